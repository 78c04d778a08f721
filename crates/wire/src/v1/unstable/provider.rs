//! Model providers: where the agent sends its model calls. Unstable.

use std::collections::BTreeMap;

use crate::shape::*;

ids! {
    /// Id of a model provider.
    ProviderId,
}

empty_objects! {
    /// The agent has `providers/*`.
    ProvidersCapabilities,
}

open_enum! {
    /// The protocol that a provider speaks. Others are possible; own ones begin with a `_`.
    pub enum LlmProtocol { // PROV-10
        /// Anthropic's.
        Anthropic = "anthropic",
        /// OpenAI's.
        OpenAi = "openai",
        /// Azure's.
        Azure = "azure",
        /// Google Vertex AI's.
        Vertex = "vertex",
        /// Amazon Bedrock's.
        Bedrock = "bedrock",
    }
}

object! {
    /// Where a provider is reached. Without secrets.
    pub struct ProviderCurrentConfig { // PROV-03
        required {
            /// The protocol.
            api_type "apiType": LlmProtocol [Required],
            /// The base URL.
            base_url "baseUrl": String [Required],
        }
    }
}

object! {
    /// A provider.
    pub struct ProviderInfo { // PROV-03
        required {
            /// Id of the provider.
            provider_id "providerId": ProviderId [Required],
            /// The protocols that the agent can use with it.
            supported "supported": Vec<LlmProtocol> [SkipInvalid],
            /// Whether it cannot be disabled.
            required "required": bool [Required], // PROV-07, PROV-13
        }
        optional {
            /// Where it is reached; absent if it is disabled.
            current "current": Option<ProviderCurrentConfig> [Optional], // PROV-04
        }
    }
}

empty_objects! {
    [nullable]
    /// Lists the providers.
    ListProvidersRequest, // PROV-02
}

object! {
    /// The providers, disabled ones too. A list with a malformed entry is refused: what routes
    /// model calls is not guessed.
    pub struct ListProvidersResponse { // PROV-09
        required {
            /// The providers.
            providers "providers": Vec<ProviderInfo> [Required],
        }
    }
}

object! {
    /// Replaces the configuration of a provider.
    pub struct SetProviderRequest { // PROV-05, PROV-12
        required {
            /// The provider.
            provider_id "providerId": ProviderId [Required],
            /// One of the protocols that it supports.
            api_type "apiType": LlmProtocol [Required],
            /// The base URL.
            base_url "baseUrl": String [Required],
        }
        optional {
            /// Headers of every request; absent means none.
            headers "headers": BTreeMap<String, String> [StrictOrDefault], // PROV-05
        }
    }
}

empty_objects! {
    [nullable]
    /// The provider is set up.
    SetProviderResponse,
}

object! {
    /// Disables a provider.
    pub struct DisableProviderRequest { // PROV-07, PROV-08
        required {
            /// The provider.
            provider_id "providerId": ProviderId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The provider is disabled.
    DisableProviderResponse,
}

crate::methods! {
    "providers/list": ListProvidersRequest => ListProvidersResponse,
    "providers/set": SetProviderRequest => SetProviderResponse,
    "providers/disable": DisableProviderRequest => DisableProviderResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn set(rest: &str) -> serde_json::Result<SetProviderRequest> {
        let text = format!(r#"{{"providerId":"p","apiType":"_own","baseUrl":"https://e.example"{rest}}}"#);
        serde_json::from_str(&text)
    }

    #[test]
    fn headers_may_be_absent_but_not_wrong() {
        // shows PROV-05, PROV-06, PROV-10
        let request = set("").unwrap();
        assert!(request.headers.is_empty());
        assert_eq!(request.api_type, LlmProtocol::Other("_own".to_owned()));
        assert_eq!(set(r#","headers":{"X-Src":"ide"}"#).unwrap().headers["X-Src"], "ide");
        for headers in ["null", "[]", r#"{"A":1}"#] {
            assert!(set(&format!(r#","headers":{headers}"#)).is_err(), "{headers}");
        }
    }

    #[test]
    fn null_and_absent_mean_disabled_and_malformed_is_refused() {
        // shows PROV-03, PROV-04
        let list = |entry: &str| {
            let text = format!(
                r#"{{"providers":[{{"providerId":"p","supported":["openai",5],"required":false{entry}}}]}}"#
            );
            serde_json::from_str::<ListProvidersResponse>(&text)
        };
        let expected = ProviderInfo::new("p", vec![LlmProtocol::OpenAi], false);
        for entry in ["", r#","current":null"#] {
            assert_eq!(list(entry).unwrap().providers[0], expected);
        }
        assert!(list(r#","current":{"apiType":"openai"}"#).is_err());
        let incomplete = r#"{"providers":[{"providerId":"x"}]}"#;
        assert!(serde_json::from_str::<ListProvidersResponse>(incomplete).is_err());
    }
}
