//! Files of this machine, through the jail of the host.

use attache_host::files::{FileLimits, Jail};

use super::{Ground, MOST_TEXT, Place};

/// Opened anew each time: a directory that was moved away and made again is the session's directory too.
fn jail(ground: &Ground, place: &Place) -> Jail {
    let limits = FileLimits { read: MOST_TEXT as u64 * 16, ..FileLimits::default() };
    let jail = match (place.inside, place.real.parent()) {
        (false, Some(parent)) => Jail::new([parent]),
        _ => Jail::new(ground.roots()),
    };
    jail.limits(limits)
}

/// Disks may be slow, and nobody else should wait for them.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

pub(super) async fn read(
    ground: &Ground,
    place: &Place,
    line: Option<u32>,
    limit: Option<u32>,
) -> Result<String, String> {
    let (jail, path) = (jail(ground, place), place.real.clone());
    blocking(move || jail.read(&path, line, limit).map_err(|error| error.to_string())).await
}

pub(super) async fn write(ground: &Ground, place: &Place, text: &str) -> Result<(), String> {
    let (jail, path, text) = (jail(ground, place), place.real.clone(), text.to_owned());
    blocking(move || jail.write(&path, &text).map_err(|error| error.to_string())).await
}

pub(super) async fn bytes(ground: &Ground, place: &Place, limit: u64) -> Result<Vec<u8>, String> {
    let (jail, path) = (jail(ground, place), place.real.clone());
    blocking(move || jail.bytes(&path, limit).map_err(|error| error.to_string())).await
}

pub(super) async fn remove(ground: &Ground, place: &Place) -> Result<(), String> {
    let (jail, path) = (jail(ground, place), place.real.clone());
    blocking(move || jail.remove(&path).map_err(|error| error.to_string())).await
}

/// From inside to inside, or wherever both places were allowed.
pub(super) async fn rename(ground: &Ground, from: &Place, to: &Place) -> Result<(), String> {
    let beside = |place: &Place| if place.inside { None } else { place.real.parent().map(ToOwned::to_owned) };
    let outside = [beside(from), beside(to)].into_iter().flatten();
    let roots: Vec<_> = ground.roots().iter().cloned().chain(outside).collect();
    let (from, to) = (from.real.clone(), to.real.clone());
    blocking(move || Jail::new(roots).rename(&from, &to).map_err(|error| error.to_string())).await
}

pub(super) async fn exists(ground: &Ground, place: &Place) -> Result<bool, String> {
    let (jail, path) = (jail(ground, place), place.real.clone());
    blocking(move || Ok(jail.resolve(&path).is_ok_and(|real| real.exists()))).await
}
