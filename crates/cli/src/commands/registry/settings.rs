//! `[registry]` in the settings, with flags and environment on top.

use std::time::Duration;

use attache_registry::{Options, Registry, Source};

use crate::cx::Cx;
use crate::error::{Failure, Result};

/// Returns the registry that the settings, the environment and the flags describe.
pub(super) fn registry(cx: &Cx) -> Result<Registry> {
    let mut options = Options {
        require_checksum: cx.flags.registry.require_checksum,
        offline: cx.flags.registry.offline,
        refresh: cx.flags.registry.refresh,
        ..Options::default()
    };
    if let Some(setting) = cx.config.tables.get("registry") {
        read(&mut options, &setting.value).map_err(|what| {
            Failure::usage(format_args!("`[registry]` in {}: {what}", cx.config.user_file.display()))
        })?;
    }
    // Flags replace the environment, which replaces the settings.
    let from_env = std::env::var("ATTACHE_REGISTRY").unwrap_or_default();
    let from_env: Vec<&str> =
        from_env.split(',').map(str::trim).filter(|location| !location.is_empty()).collect();
    let from_flags: Vec<&str> = cx.flags.registry.sources.iter().map(String::as_str).collect();
    for locations in [from_env, from_flags].into_iter().filter(|locations| !locations.is_empty()) {
        let known = std::mem::take(&mut options.sources);
        let source = |location: &str| {
            let configured = known.iter().find(|source| source.location == location);
            configured.cloned().unwrap_or_else(|| Source::new(location))
        };
        options.sources = locations.into_iter().map(source).collect();
    }
    if options.sources.is_empty() {
        options.sources.push(Source::public());
    }
    options.sources.iter_mut().for_each(|source| source.make_absolute(&cx.cwd));
    Ok(Registry { data: cx.paths.data.clone(), cache: cx.paths.cache.clone(), options })
}

fn read(options: &mut Options, value: &toml::Value) -> Result<(), String> {
    for (key, value) in value.as_table().into_iter().flatten() {
        let wrong = |wanted: &str| format!("`{key}` is {wanted}");
        let flag = || value.as_bool().ok_or_else(|| wrong("true or false"));
        match key.as_str() {
            "url" => {
                let list = match value {
                    toml::Value::Array(list) => list.as_slice(),
                    one => std::slice::from_ref(one),
                };
                let sources: Option<Vec<Source>> = list.iter().map(source).collect();
                options.sources = sources.ok_or_else(|| wrong("an address, or a list of them"))?;
            }
            "max_age" => {
                let seconds = value.as_integer().and_then(|seconds| u64::try_from(seconds).ok());
                options.max_age = Duration::from_secs(seconds.ok_or_else(|| wrong("a number of seconds"))?);
            }
            "allow_http" => options.allow_http = flag()?,
            "require_checksum" => options.require_checksum |= flag()?,
            "certificates" => {
                options.certificates = Some(value.as_str().ok_or_else(|| wrong("a file in PEM"))?.into());
            }
            _ => {
                let known = ["url", "max_age", "allow_http", "require_checksum", "certificates"];
                return Err(format!("there is no `{key}`, only {}", known.join(", ")));
            }
        }
    }
    Ok(())
}

/// Reads an address, or `{ url = …, token_env = … }`.
fn source(value: &toml::Value) -> Option<Source> {
    if let Some(location) = value.as_str() {
        return Some(Source::new(location));
    }
    let table = value.as_table()?;
    let token_env = match table.get("token_env") {
        None => None,
        Some(name) => Some(name.as_str()?.to_owned()),
    };
    Some(Source { location: table.get("url")?.as_str()?.to_owned(), token_env })
}
