//! The figures kept in the repository.

use std::{collections::BTreeMap, fs, io::ErrorKind, path::Path};

/// Instructions per call, by case.
pub(crate) type Counts = BTreeMap<String, u64>;

const HEADER: &str = "\
# Instructions per call, counted by `.ci/guard` with callgrind, by compiler and processor. `.ci/guard` fails if one of
# them grows by 5 %, and reports one that shrinks by 5 %. `.ci/guard --update` writes new figures. A commit that makes
# calls more expensive on purpose includes them and says what was bought.
";

/// The counts of each compiler that has been counted with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures(BTreeMap<String, Counts>);

/// Returns the key of figures, such as `rustc 1.95.0 x86_64`. Code of another compiler is not a regression.
pub(crate) fn key(compiler: &str) -> String {
    let version = compiler.split(" (").next().unwrap_or(compiler);
    format!("{version} {}", std::env::consts::ARCH)
}

impl Figures {
    /// Reads the figures; empty if there is no file.
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| format!("{}: {error}", file.display()))?,
        };
        toml::from_str(&text).map(Self).map_err(|error| format!("{}: {error}", file.display()))
    }

    pub(crate) fn of(&self, key: &str) -> Option<&Counts> {
        self.0.get(key)
    }

    pub(crate) fn set(&mut self, key: String, counts: Counts) {
        self.0.insert(key, counts);
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), String> {
        fs::write(file, self.text()?).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn text(&self) -> Result<String, String> {
        let tables = toml::to_string(&self.0).map_err(|error| error.to_string())?;
        Ok(format!("{HEADER}\n{tables}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut figures = Figures::default();
        figures.set(key("rustc 1.95.0 (59807616e 2026-04-14)"), Counts::from([("full 1".into(), 5000)]));
        let text = figures.text().unwrap();
        assert!(text.contains("\"full 1\" = 5000"), "{text}");
        assert_eq!(toml::from_str(&text).map(Figures), Ok(figures));
    }

    #[test]
    fn a_compiler_is_known_by_its_version() {
        let key = key("rustc 1.95.0 (59807616e 2026-04-14)");
        assert_eq!(key, format!("rustc 1.95.0 {}", std::env::consts::ARCH));
    }
}
