//! Usage of tokens, context window and money.

// MSG-05, PROMPT-19

use crate::shape::*;

#[cfg(feature = "unstable")]
object! {
    /// Tokens counted over a turn or a session.
    pub struct Usage { // PROMPT-19
        required {
            /// All tokens.
            total_tokens "totalTokens": u64 [Required],
            /// Tokens that the model read.
            input_tokens "inputTokens": u64 [Required],
            /// Tokens that the model wrote.
            output_tokens "outputTokens": u64 [Required],
        }
        optional {
            /// Tokens of thoughts.
            thought_tokens "thoughtTokens": Option<u64> [Lenient],
            /// Tokens read from a cache.
            cached_read_tokens "cachedReadTokens": Option<u64> [Lenient],
            /// Tokens written to a cache.
            cached_write_tokens "cachedWriteTokens": Option<u64> [Lenient],
        }
    }
}

object! {
    /// An amount of money.
    pub struct Cost {
        required {
            /// The amount.
            amount "amount": f64 [Required],
            /// The currency, as an ISO 4217 code.
            currency "currency": String [Required],
        }
    }
}

object! {
    /// How full the context window is.
    pub struct UsageUpdate { // MSG-05
        required {
            /// Tokens in the window.
            used "used": u64 [Required],
            /// How many fit.
            size "size": u64 [Required],
        }
        optional {
            /// The cost of the session so far.
            cost "cost": Option<Cost> [Lenient],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn counts_are_strict_and_the_cost_is_not() {
        // shows MSG-05
        let read = serde_json::from_str::<UsageUpdate>;
        assert!(read(r#"{"used":-1,"size":5}"#).is_err());
        assert!(read(r#"{"used":1.0,"size":5}"#).is_err());
        assert!(read(r#"{"used":1}"#).is_err());
        assert_eq!(
            read(r#"{"used":1,"size":5,"cost":{"amount":"1"}}"#).unwrap(),
            UsageUpdate::new(1u64, 5u64)
        );
        let whole = read(r#"{"used":1,"size":5,"cost":{"amount":1,"currency":"EUR"}}"#).unwrap();
        assert_eq!(whole.cost, Some(Cost::new(1.0, "EUR")));
    }
}
