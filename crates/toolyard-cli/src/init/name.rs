//! The name of the Rust package.

use crate::error::Error;
use std::path::{Path, absolute};

/// What stands for a directory whose name cannot be that of a package.
const FALLBACK: &str = "first-agent";

const LENGTH_MAX: usize = 64;

/// Names that cargo or Windows takes for something else, or that a dependency of the package has.
const TAKEN: &str = "alloc aux build com1 con core deps examples incremental lpt1 main nul prn proc-macro serde-json std test \
                     tokio toolyard toolyard-wire";

/// The words of the language, none of which names a crate.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false \
                        final fn for gen if impl in let loop macro match mod move mut override priv pub ref return \
                        self static struct super trait true try type typeof union unsafe unsized use virtual where \
                        while yield";

/// A name that cargo accepts for a package with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageName(String);

impl PackageName {
    /// Takes the name as it is.
    ///
    /// # Errors
    /// [`Error::Usage`] if cargo would refuse it.
    pub(super) fn parse(name: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Usage(format!("--name {name:?} {why}"));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins || !name.chars().all(is_plain) || name.len() > LENGTH_MAX {
            let why =
                "cannot be a package's name: use up to 64 letters, digits, '-' and '_', with a letter first";
            return Err(wrong(why));
        }
        let alike = name.to_ascii_lowercase().replace('_', "-");
        if [TAKEN, KEYWORDS].iter().any(|words| words.split_whitespace().any(|word| word == alike)) {
            return Err(wrong(
                "means something else to cargo or to Rust: choose another one, such as my-agent",
            ));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name of the directory, in small letters and with `-` for what has no place in it, if that can be one.
    pub(super) fn of_dir(dir: &Path) -> Self {
        let dir = dir.canonicalize().or_else(|_| absolute(dir)).unwrap_or_else(|_| dir.to_owned());
        let name = dir.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let plain = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        let plain = plain.trim_matches(['-', '_']);
        Self::parse(plain).unwrap_or_else(|_| Self(FALLBACK.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-14
    #[test]
    fn a_name_is_one_that_cargo_accepts() {
        for name in ["notes-agent", "a", "agent_2", "Notes"] {
            assert_eq!(PackageName::parse(name).map(|name| name.0).ok().as_deref(), Some(name));
        }
        let long = "a".repeat(LENGTH_MAX + 1);
        let none =
            ["", "2agents", "-a", "my agent", "a.b", "ärger", "a\"b", &long, "toolyard", "serde_json", "fn"];
        for name in none {
            assert!(PackageName::parse(name).is_err(), "{name}");
        }
    }

    /// KT-14
    #[test]
    fn a_directory_gives_its_name_where_it_can() {
        let of = |dir: &str| PackageName::of_dir(Path::new(dir)).0;
        assert_eq!(of("/home/ada/My Agent"), "my-agent");
        assert_eq!(of("/home/ada/notes.d/"), "notes-d");
        assert_eq!(of("/"), FALLBACK);
        assert_eq!(of("/home/ada/2024"), FALLBACK);
        assert_eq!(of("/home/ada/toolyard"), FALLBACK);
    }
}
