//! What the command of a server downloads, and what it runs then.

use super::{npx, uvx};
use serde::{Deserialize, Serialize};
use std::path::Path;
use toolyard::ContentHash;

/// What is downloaded, which is all that a fetch depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Source {
    /// Packages of the npm registry, or files.
    Npm {
        /// As npm takes them, such as `@scope/name@1.2.3`.
        packages: Vec<String>,
        /// The program of theirs; without it, that of the only package.
        program: Option<String>,
    },
    /// Packages of the Python index, or wheels.
    Python {
        /// As pip takes them, such as `name==1.2.3`.
        packages: Vec<String>,
        /// The program of theirs.
        program: String,
        /// Which Python, such as `3.12`; any, if it is not said.
        python: Option<String>,
    },
}

/// What a command such as `npx -y @scope/name@1.2.3 --flag` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What it downloads.
    pub(crate) source: Source,
    /// The arguments of what it runs.
    pub(crate) args: Vec<String>,
}

impl Wanted {
    /// What a command downloads whose relative paths start at `here`; `None` if it downloads nothing as far as is known.
    ///
    /// # Errors
    /// Which of its arguments is not understood.
    pub(crate) fn of(command: &Path, args: &[String], here: &Path) -> Option<Result<Self, String>> {
        let name = command.file_name()?.to_str()?;
        match name.strip_suffix(".cmd").or(name.strip_suffix(".exe")).unwrap_or(name) {
            "npx" => Some(npx::parse(args, here)),
            "uvx" => Some(uvx::parse(args, here)),
            "uv" => {
                let rest = args.strip_prefix(&["tool".to_owned(), "run".to_owned()])?;
                Some(uvx::parse(rest, here))
            }
            _ => None,
        }
    }
}

impl Source {
    /// The name of what is fetched for this, the same for the same.
    pub(crate) fn key(&self) -> String {
        let text = |text: &String| ContentHash::new("text").text(text).finish();
        let hash = ContentHash::new("mcp fetch 1");
        let hash = match self {
            Self::Npm { packages, program } => {
                hash.text("npm").list(packages.iter().map(text)).option(program.as_ref().map(text))
            }
            Self::Python { packages, program, python } => {
                let hash = hash.text("python").list(packages.iter().map(text)).text(program);
                hash.option(python.as_ref().map(text))
            }
        };
        hash.finish_hex()[..KEY_DIGITS].to_owned()
    }

    /// The packages, as their installer takes them.
    pub(crate) fn packages(&self) -> &[String] {
        let (Self::Npm { packages, .. } | Self::Python { packages, .. }) = self;
        packages
    }
}

/// How many hexadecimal digits a key has.
const KEY_DIGITS: usize = 32;

/// The value of an option: what follows `=`, or the next argument.
pub(super) fn value<'a>(
    option: &str,
    inline: Option<&'a str>,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<&'a str, String> {
    let value = inline.or_else(|| rest.next().map(String::as_str));
    value.filter(|value| !value.is_empty()).ok_or_else(|| format!("'{option}' needs a value"))
}

/// An option and the value that it is written with, if it is.
pub(super) fn split(argument: &str) -> (&str, Option<&str>) {
    match argument.split_once('=') {
        Some((option, value)) if argument.starts_with("--") => (option, Some(value)),
        _ => (argument, None),
    }
}

/// The file that a package is, if it is named as one: a path that begins with `/`, `./` or `../`.
pub(super) fn file(package: &str, here: &Path) -> Option<Result<String, String>> {
    let is_path = ["/", "./", "../"].iter().any(|start| package.starts_with(start));
    let lies = || {
        let path = here.join(package).canonicalize().map_err(|error| format!("'{package}': {error}"))?;
        path.into_os_string().into_string().map_err(|_| format!("'{package}' is not valid UTF-8"))
    };
    is_path.then(lies)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str, args: &[&str]) -> Option<Result<Wanted, String>> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        Wanted::of(Path::new(command), &args, Path::new("/"))
    }

    /// SB-5: commands that download are known by their names, wherever they lie.
    #[test]
    fn commands_that_download_are_known_by_name() {
        for (command, args) in
            [("npx", &["a"][..]), ("/usr/bin/npx", &["a"]), ("uvx", &["a"]), ("uv", &["tool", "run", "a"])]
        {
            assert!(of(command, args).is_some_and(|wanted| wanted.is_ok()), "{command}");
        }
        for (command, args) in [("node", &["a"][..]), ("uv", &["run", "a"]), ("/srv/npx/server", &[])] {
            assert_eq!(of(command, args), None, "{command}");
        }
    }

    /// SB-5: what is fetched is found again for the same packages, program and interpreter, and for no others.
    #[test]
    fn what_is_fetched_is_known_by_what_was_asked_for() {
        let key = |command, args| of(command, args).unwrap().unwrap().source.key();
        let different = [
            key("npx", &["a"]),
            key("npx", &["a@1"]),
            key("npx", &["-p", "a", "a"]),
            key("npx", &["-p", "a", "-p", "b", "a"]),
            key("uvx", &["a"]),
            key("uvx", &["--python", "3.12", "a"]),
            key("uvx", &["--with", "b", "a"]),
            key("uvx", &["--from", "b", "a"]),
        ];
        let unique: std::collections::BTreeSet<_> = different.iter().collect();
        assert_eq!(unique.len(), different.len());
        assert_eq!(key("npx", &["-y", "a", "--flag"]), key("npx", &["a"]));
        assert_eq!(key("uvx", &["a", "x"]), key("uv", &["tool", "run", "a"]));
    }
}
