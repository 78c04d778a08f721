//! Why a model did not answer, in words that say what to do next.

use std::fmt;
use std::time::Duration;

/// Why a model did not answer. None of these texts holds a key: what a provider says is masked before it gets here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// The key is missing, wrong or not allowed to use this model.
    Auth(String),
    /// Too many requests or too many tokens, also after the retries.
    RateLimited {
        /// When the provider says to come back.
        after: Option<Duration>,
        /// What the provider says.
        message: String,
    },
    /// The provider has too much to do, also after the retries.
    Overloaded(String),
    /// The provider refused the request for what is in it.
    Refused(String),
    /// The conversation does not fit the model's window.
    TooLong(String),
    /// The provider cannot be reached, fell silent, or hung up in the middle.
    Network(String),
    /// The provider sent what its interface does not allow.
    Protocol(String),
    /// Anything else that the provider says.
    Other {
        /// The HTTP status, if it came as one.
        status: Option<u16>,
        /// What the provider says.
        message: String,
    },
}

impl ModelError {
    /// The same error with another text in it.
    pub(crate) fn map_text(self, map: impl FnOnce(&str) -> String) -> Self {
        match self {
            ModelError::Auth(text) => ModelError::Auth(map(&text)),
            ModelError::RateLimited { after, message } => {
                ModelError::RateLimited { after, message: map(&message) }
            }
            ModelError::Overloaded(text) => ModelError::Overloaded(map(&text)),
            ModelError::Refused(text) => ModelError::Refused(map(&text)),
            ModelError::TooLong(text) => ModelError::TooLong(map(&text)),
            ModelError::Network(text) => ModelError::Network(map(&text)),
            ModelError::Protocol(text) => ModelError::Protocol(map(&text)),
            ModelError::Other { status, message } => ModelError::Other { status, message: map(&message) },
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::Auth(message) => {
                write!(f, "the provider does not accept the key: {message}; set a valid key")
            }
            ModelError::RateLimited { after: Some(after), message } => {
                write!(f, "too many requests: {message}; try again in {} s", after.as_secs().max(1))
            }
            ModelError::RateLimited { after: None, message } => {
                write!(f, "too many requests: {message}; try again later or choose another model")
            }
            ModelError::Overloaded(message) => {
                write!(f, "the provider is overloaded: {message}; try again later or choose another model")
            }
            ModelError::Refused(message) => write!(f, "the provider refused: {message}; put it differently"),
            ModelError::TooLong(message) => {
                write!(
                    f,
                    "the conversation does not fit the model: {message}; compact it or start a new session"
                )
            }
            ModelError::Network(message) => write!(f, "{message}; check the connection and try again"),
            ModelError::Protocol(message) => {
                write!(f, "the provider's answer makes no sense: {message}; check its base URL and the model")
            }
            ModelError::Other { status: Some(status), message } => {
                write!(
                    f,
                    "the provider answered {status}: {message}; check the model's name and the settings"
                )
            }
            ModelError::Other { status: None, message } => {
                write!(f, "the provider failed: {message}; try again")
            }
        }
    }
}

impl std::error::Error for ModelError {}
