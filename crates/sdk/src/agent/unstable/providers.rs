//! Model providers that the client configures.

use std::future::Future;
use std::sync::Arc;

use attache_wire::v1::{
    DisableProviderRequest, DisableProviderResponse, ListProvidersRequest, ListProvidersResponse, ProviderId,
    ProviderInfo, SetProviderRequest, SetProviderResponse,
};

use crate::agent::core::Core;
use crate::agent::open::method_not_found;
use crate::agent::session::BoxFuture;
use crate::{Error, Result};

/// Model providers of an agent; installed with
/// [`Agent::providers`](crate::agent::Agent::providers). The SDK checks requests against
/// [`list`](Providers::list) first.
///
/// ```
/// use attache::Result;
/// use attache::agent::Providers;
/// use attache::model::{LlmProtocol, ProviderId, ProviderInfo, SetProviderRequest};
///
/// struct Routes;
///
/// impl Providers for Routes {
///     async fn list(&self) -> Result<Vec<ProviderInfo>> {
///         Ok(vec![ProviderInfo::new("main", vec![LlmProtocol::Anthropic], true)])
///     }
///
///     async fn set(&self, request: SetProviderRequest) -> Result<()> {
///         println!("{} is at {}", request.provider_id, request.base_url);
///         Ok(())
///     }
///
///     async fn disable(&self, _: ProviderId) -> Result<()> {
///         Ok(())
///     }
/// }
/// ```
pub trait Providers: Send + Sync + 'static {
    /// Lists all providers, disabled ones too, without secrets.
    // PROV-09, PROV-03
    fn list(&self) -> impl Future<Output = Result<Vec<ProviderInfo>>> + Send;
    /// Replaces the whole configuration of a provider, in memory only.
    // PROV-05, PROV-11
    fn set(&self, request: SetProviderRequest) -> impl Future<Output = Result<()>> + Send;
    /// Disables a provider.
    fn disable(&self, id: ProviderId) -> impl Future<Output = Result<()>> + Send;
}

pub(super) trait DynProviders: Send + Sync {
    fn list(&self) -> BoxFuture<'_, Result<ListProvidersResponse>>;
    fn set(&self, request: SetProviderRequest) -> BoxFuture<'_, Result<SetProviderResponse>>;
    fn disable(&self, request: DisableProviderRequest) -> BoxFuture<'_, Result<DisableProviderResponse>>;
}

impl<P: Providers> DynProviders for P {
    fn list(&self) -> BoxFuture<'_, Result<ListProvidersResponse>> {
        Box::pin(async { Ok(ListProvidersResponse::new(Providers::list(self).await?)) })
    }

    fn set(&self, request: SetProviderRequest) -> BoxFuture<'_, Result<SetProviderResponse>> {
        Box::pin(async move {
            let known = Providers::list(self).await?;
            let known = known.iter().find(|provider| provider.provider_id == request.provider_id);
            // PROV-06: an unknown provider, or a protocol that it does not speak.
            match known {
                None => Err(Error::invalid_params(format!("there is no provider `{}`", request.provider_id))),
                Some(provider) if !provider.supported.contains(&request.api_type) => {
                    Err(Error::invalid_params(format!("this provider does not speak `{}`", request.api_type)))
                }
                Some(_) => Providers::set(self, request).await.map(|()| SetProviderResponse::new()),
            }
        })
    }

    fn disable(&self, request: DisableProviderRequest) -> BoxFuture<'_, Result<DisableProviderResponse>> {
        Box::pin(async move {
            let known = Providers::list(self).await?;
            match known.iter().find(|provider| provider.provider_id == request.provider_id) {
                // PROV-07
                Some(provider) if provider.required => {
                    Err(Error::invalid_params("this provider is required and cannot be disabled"))
                }
                Some(_) => Providers::disable(self, request.provider_id)
                    .await
                    .map(|()| DisableProviderResponse::new()),
                // PROV-08: an unknown provider counts as disabled.
                None => Ok(DisableProviderResponse::new()),
            }
        })
    }
}

fn service(core: &Core) -> Result<&dyn DynProviders> {
    core.services.unstable.providers.as_deref().ok_or_else(|| method_not_found("providers"))
}

pub(super) async fn list(core: Arc<Core>, _: ListProvidersRequest) -> Result<ListProvidersResponse> {
    service(&core)?.list().await
}

pub(super) async fn set(core: Arc<Core>, request: SetProviderRequest) -> Result<SetProviderResponse> {
    service(&core)?.set(request).await
}

pub(super) async fn disable(
    core: Arc<Core>,
    request: DisableProviderRequest,
) -> Result<DisableProviderResponse> {
    service(&core)?.disable(request).await
}
