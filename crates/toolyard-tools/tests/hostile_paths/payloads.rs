//! The published lists, and variants of each line.

use serde_json::Value;
use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

/// The payloads of kind `path`; `None`, with a note on stderr, if the data is absent.
pub(crate) fn paths() -> Option<Vec<String>> {
    let text = read("hostile-paths/payloads.jsonl")?;
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let paths = lines.filter(|line| line["kind"] == "path");
    Some(paths.map(|line| line["payload"].as_str().unwrap().to_owned()).collect())
}

pub(crate) fn naughty() -> Option<Vec<String>> {
    Some(serde_json::from_str(&read("naughty-strings/strings.json")?).unwrap())
}

fn read(file: &str) -> Option<String> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = env::var_os("TOOLYARD_DATA").map_or(default, PathBuf::from).join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if env::var_os("CI").is_some_and(|ci| ci == "true") => {
            panic!("{}: {error}; the data must be there in CI", path.display())
        }
        Err(error) => {
            eprintln!("skipped: {}: {error}; set TOOLYARD_DATA to the data's directory", path.display());
            None
        }
    }
}

/// Each payload unchanged, decoded once and twice, with slashes for backslashes, aimed at the canary, and appended
/// to the root and to a directory.
pub(crate) fn variants(payloads: &[String], root: PathBuf) -> Vec<String> {
    let mut variants = BTreeSet::new();
    for payload in payloads {
        let once = percent_decoded(payload);
        let twice = percent_decoded(&once);
        let forward = twice.replace('\\', "/");
        let aimed = [("{FILE}", "canary.txt"), ("etc/passwd", "canary.txt")]
            .iter()
            .fold(forward.clone(), |text, (from, to)| text.replace(from, to));
        let behind_root = format!("{}/{aimed}", root.display());
        let behind_dir = format!("dir/{aimed}");
        variants.extend([payload.clone(), once, twice, forward, aimed, behind_root, behind_dir]);
    }
    variants.into_iter().collect()
}

/// Decodes `%2e` to `.`, with replacement characters where the result is not UTF-8.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = hex.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        decoded.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
