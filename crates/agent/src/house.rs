//! What all sessions of one agent share.

use std::path::PathBuf;
use std::sync::Arc;

use attache::agent::{NewSession, Open};
use attache::wire::v1::SessionId;
use attache::{Error, Result, code};

use crate::model::{Model, ModelInfo};
use crate::options::Options;
use crate::session::Session;
use crate::store::{NewRow, Store};

/// What all sessions of one agent share.
pub(crate) struct House {
    pub(crate) options: Options,
    pub(crate) store: Store,
}

impl House {
    pub(crate) fn new(options: Options) -> Result<Arc<Self>> {
        let store = match &options.store {
            Some(path) => Store::open(path, attache_host::secrets::Mask::from_env()),
            None => Store::memory(),
        };
        let store = store.map_err(internal)?;
        Ok(Arc::new(House { options, store }))
    }

    /// A new session.
    pub(crate) async fn new_session(self: Arc<Self>, request: NewSession) -> Result<Open<Session>> {
        let new =
            NewRow { id: request.id.as_str(), cwd: &request.cwd, roots: &request.additional_directories };
        self.store.create(&new).map_err(internal)?;
        self.open(request).await
    }

    /// Opens a session that is in the store, with what is kept of it.
    pub(crate) async fn open(self: Arc<Self>, request: NewSession) -> Result<Open<Session>> {
        let messages =
            self.store.context(request.id.as_str()).map_err(|error| unknown(&request.id, error))?;
        let settings = self.store.settings(request.id.as_str()).map_err(internal)?;
        Ok(Session::open(self, request, messages, &settings).await)
    }

    /// The models that can be chosen.
    pub(crate) async fn models(&self) -> Vec<ModelInfo> {
        match &self.options.model {
            Some(spec) => self.open_model(spec).await.map(|model| model.info().clone()).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// The model of this name.
    pub(crate) async fn open_model(&self, spec: &str) -> Result<Arc<dyn Model>, String> {
        match spec.strip_prefix("script:") {
            Some(path) => {
                crate::model::script::Scripted::open(&PathBuf::from(path)).map(|model| Arc::new(model) as _)
            }
            None => Err(format!("there is no model `{spec}`")),
        }
    }

    /// How a command line is started.
    pub(crate) fn command(&self, line: &str, _roots: &[PathBuf]) -> Vec<String> {
        vec!["/bin/sh".to_owned(), "-c".to_owned(), line.to_owned()]
    }
}

/// RPC-18
fn unknown(id: &SessionId, error: crate::store::StoreError) -> Error {
    match error {
        crate::store::StoreError::Unknown(_) => Error::not_found(format!("there is no session `{id}`")),
        error => internal(error),
    }
}

/// What is wrong with the user's own disk or settings may be told.
pub(crate) fn internal(error: impl std::fmt::Display) -> Error {
    Error::refuse(code::INTERNAL_ERROR, error.to_string())
}
