//! The arguments of `npx`.

use super::wanted::{Source, Wanted, file, split, value};
use std::path::Path;

/// Reads `[-y] [--package PACKAGE]… [--] PACKAGE-OR-PROGRAM [ARGUMENT]…`.
pub(super) fn parse(args: &[String], here: &Path) -> Result<Wanted, String> {
    let (mut packages, mut rest) = (Vec::new(), args.iter());
    let command = loop {
        let argument = rest.next().ok_or("npx: it names no package")?;
        let (option, inline) = split(argument);
        match option {
            "-y" | "--yes" if inline.is_none() => {}
            "-p" | "--package" => {
                let named = value(option, inline, &mut rest).map_err(|why| format!("npx: {why}"))?;
                packages.push(package(named, here)?);
            }
            "--" if inline.is_none() => break rest.next().ok_or("npx: it names no package")?,
            _ if argument.starts_with('-') => {
                return Err(format!("npx: the argument '{argument}' is not understood"));
            }
            _ => break argument,
        }
    };
    let program = if packages.is_empty() {
        packages.push(package(command, here)?);
        None
    } else {
        Some(program(command)?)
    };
    Ok(Wanted { source: Source::Npm { packages, program }, args: rest.cloned().collect() })
}

/// A package of the registry with the version that may follow it, or a file. Others (`git+…`, `owner/name`, URLs) would
/// be built here from their sources.
fn package(text: &str, here: &Path) -> Result<String, String> {
    if let Some(file) = file(text, here) {
        return file.map_err(|why| format!("npx: {why}"));
    }
    let (scope, rest) = match text.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        None => (None, text),
        Some(Some((scope, rest))) => (Some(scope), rest),
        Some(None) => (Some(""), text),
    };
    let (name, version) = rest.split_once('@').map_or((rest, None), |(name, version)| (name, Some(version)));
    let is_name = |name: &str| {
        let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && name.chars().all(may_be)
    };
    let is_version = |version: &str| {
        let may_be = |c: char| c.is_ascii_alphanumeric() || "-_.+~^<>=*| ".contains(c);
        !version.is_empty() && version.chars().all(may_be)
    };
    if is_name(name) && scope.is_none_or(is_name) && version.is_none_or(is_version) {
        return Ok(text.to_owned());
    }
    Err(format!("npx: '{text}' is neither a package of the registry, as 'name@1.2.3', nor a path"))
}

/// The name of a program among those of the packages.
fn program(text: &str) -> Result<String, String> {
    let is_name = !text.contains(['/', '\\']) && !text.starts_with('.');
    if is_name { Ok(text.to_owned()) } else { Err(format!("npx: '{text}' is not the name of a program")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packages, program, arguments.
    type Parsed = (Vec<String>, Option<String>, Vec<String>);

    fn parsed(args: &[&str]) -> Result<Parsed, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let Wanted { source, args } = parse(&args, Path::new("/"))?;
        let Source::Npm { packages, program } = source else { panic!("not of npm") };
        Ok((packages, program, args))
    }

    /// SB-5: a package, with its scope and version, and the arguments of its program, options among them.
    #[test]
    fn a_package_is_read_with_its_version_and_its_arguments() {
        for package in
            ["a", "a@1.2.3", "@scope/a", "@scope/a@1.2.3", "a@latest", "a@^1.2", "a.b-c_d@1.0.0-rc.1"]
        {
            let expect = (vec![package.to_owned()], None, vec!["-y".to_owned(), "/srv".to_owned()]);
            for before in [&[][..], &["-y"], &["--yes"], &["--"], &["-y", "--"]] {
                assert_eq!(
                    parsed(&[before, &[package, "-y", "/srv"]].concat()),
                    Ok(expect.clone()),
                    "{package}"
                );
            }
        }
    }

    /// SB-5: packages that are named come before the program.
    #[test]
    fn packages_that_are_named_come_before_the_program() {
        let expect = |packages: &[&str]| {
            let packages = packages.iter().map(|&package| package.to_owned()).collect();
            Ok((packages, Some("run".to_owned()), vec!["x".to_owned()]))
        };
        assert_eq!(parsed(&["-p", "a@1", "run", "x"]), expect(&["a@1"]));
        assert_eq!(parsed(&["--package", "a", "-y", "run", "x"]), expect(&["a"]));
        assert_eq!(parsed(&["--package=a", "--package=@b/c", "--", "run", "x"]), expect(&["a", "@b/c"]));
    }

    /// SB-5: an argument that is not understood is named.
    #[test]
    fn what_is_not_understood_is_named() {
        for (args, expect) in [
            (&[][..], "npx: it names no package"),
            (&["-y"], "npx: it names no package"),
            (&["--"], "npx: it names no package"),
            (&["-p"], "npx: '-p' needs a value"),
            (&["--package=", "a"], "npx: '--package' needs a value"),
            (&["-c", "a"], "npx: the argument '-c' is not understood"),
            (&["--yes=1", "a"], "npx: the argument '--yes=1' is not understood"),
            (&["--registry=x", "a"], "npx: the argument '--registry=x' is not understood"),
            (&["-p", "a", "../run"], "npx: '../run' is not the name of a program"),
        ] {
            assert_eq!(parsed(args), Err(expect.to_owned()), "{args:?}");
        }
        for package in
            ["git+ssh://x/y", "owner/name", "https://x/y.tgz", "@scope", "a@", "a@npm:b", "a b", "@a/"]
        {
            let expect =
                format!("npx: '{package}' is neither a package of the registry, as 'name@1.2.3', nor a path");
            assert_eq!(parsed(&[package]), Err(expect), "{package}");
        }
    }

    /// SB-5: a package that is a path is known by where it lies.
    #[test]
    fn a_path_is_known_by_where_it_lies() {
        let place = tempfile::tempdir().unwrap();
        let lies = place.path().canonicalize().unwrap();
        std::fs::write(lies.join("a.tgz"), "").unwrap();
        let Wanted { source, .. } = parse(&["./a.tgz".to_owned()], place.path()).unwrap();
        assert_eq!(source.packages(), [lies.join("a.tgz").to_str().unwrap()]);
        let why = parse(&["./b.tgz".to_owned()], place.path()).unwrap_err();
        assert!(why.starts_with("npx: './b.tgz': "), "{why}");
    }
}
