//! The Debian package.

use super::archive::{Entry, ar, gzip, tar_gz};
use super::{AUTHORS, Contents, REPOSITORY, SUMMARY, VERSION};

/// The name and the bytes of the package; `None` for systems other than Linux.
pub(super) fn package(contents: &Contents) -> Result<Option<(String, Vec<u8>)>, String> {
    let target = &contents.target;
    if !target.is_linux() {
        return Ok(None);
    }
    let mut files = vec![
        Entry::program("./usr/bin/attache", &contents.program),
        Entry::text("./usr/share/doc/attache/changelog.gz", gzip(contents.changelog.as_bytes())?),
        Entry::text("./usr/share/doc/attache/copyright", copyright(contents)),
        Entry::text("./usr/share/man/man1/attache.1.gz", gzip(&contents.man)?),
    ];
    for (shell, text) in &contents.completions {
        let path = match *shell {
            "zsh" => "./usr/share/zsh/vendor-completions/_attache",
            "fish" => "./usr/share/fish/vendor_completions.d/attache.fish",
            _ => "./usr/share/bash-completion/completions/attache",
        };
        files.push(Entry::text(path, text.as_slice()));
    }
    let kilobytes = files.iter().map(|file| file.data.len().div_ceil(1024)).sum::<usize>();
    let control = format!(
        "Package: attache\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {AUTHORS} <attache-acp@users.noreply.github.com>\n\
         Installed-Size: {kilobytes}\n{}Recommends: bubblewrap\nSection: devel\nPriority: optional\n\
         Homepage: {REPOSITORY}\nDescription: {SUMMARY}\n Attaché speaks the Agent Client Protocol (ACP) with any \
         coding agent:\n as a chat, in scripts, and as an agent for editors.\n",
        target.debian(),
        target.debian_depends(),
    );
    let control = tar_gz(&[Entry::text("./control", control)], true)?;
    let data = tar_gz(&files, true)?;
    let package = ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.gz", &data)]);
    Ok(Some((format!("attache_{VERSION}_{}.deb", target.debian()), package)))
}

/// The file that Debian wants in the place of the licences.
fn copyright(contents: &Contents) -> String {
    let mut text = format!("Attaché, {REPOSITORY}\n\nMIT or Apache-2.0, at your option.\n");
    for (name, licence) in &contents.licences {
        text += &format!("\n----- {name}\n\n{licence}");
    }
    text
}
