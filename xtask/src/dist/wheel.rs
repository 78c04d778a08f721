//! The wheel for PyPI.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::archive::{Entry, sha256, zip};
use super::{AUTHORS, Contents, LICENCE, REPOSITORY, SUMMARY, VERSION};

/// The name of the project on PyPI.
pub(super) const NAME: &str = "attache-acp";

/// `uvx attache-acp` looks for a command of that name; it becomes the program, which is installed
/// beside it.
const MODULE: &str = r#""""Starts the program attache."""

import os
import sys
import sysconfig


def main():
    program = os.path.join(sysconfig.get_path("scripts"), "attache")
    os.execv(program, [program, *sys.argv[1:]])
"#;

/// The name and the bytes of the wheel.
pub(super) fn package(contents: &Contents) -> Result<(String, Vec<u8>), String> {
    let base = format!("{}-{VERSION}", NAME.replace('-', "_"));
    let info = format!("{base}.dist-info");
    let tags = contents.target.wheel();
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\nSummary: {SUMMARY}\nAuthor: {AUTHORS}\n\
         License-Expression: {LICENCE}\nProject-URL: Repository, {REPOSITORY}\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n"
    );
    for (name, _) in &contents.licences {
        metadata += &format!("License-File: {name}\n");
    }
    metadata += &format!("\n{}", contents.readme);
    let mut wheel = "Wheel-Version: 1.0\nGenerator: attache xtask\nRoot-Is-Purelib: false\n".to_owned();
    for tag in &tags {
        wheel += &format!("Tag: py3-none-{tag}\n");
    }
    let mut entries = vec![
        Entry::program(format!("{base}.data/scripts/attache"), &contents.program),
        Entry::text("attache_acp/__init__.py", MODULE),
        Entry::text(format!("{info}/METADATA"), metadata),
        Entry::text(format!("{info}/WHEEL"), wheel),
        Entry::text(
            format!("{info}/entry_points.txt"),
            format!("[console_scripts]\n{NAME} = attache_acp:main\n"),
        ),
        Entry::text(format!("{base}.data/data/share/man/man1/attache.1"), contents.man.as_slice()),
    ];
    entries.extend(contents.licence_entries(&format!("{info}/licenses/")));
    let mut record = String::new();
    for entry in &entries {
        let hash = URL_SAFE_NO_PAD.encode(sha256(&entry.data));
        record += &format!("{},sha256={hash},{}\n", entry.path, entry.data.len());
    }
    record += &format!("{info}/RECORD,,\n");
    entries.push(Entry::text(format!("{info}/RECORD"), record));
    Ok((format!("{base}-py3-none-{}.whl", tags.join(".")), zip(&entries)?))
}
