//! The arguments of `uvx`, which are those of `uv tool run`.

use super::wanted::{Source, Wanted, file, split, value};
use std::path::Path;

/// Reads `[--from PACKAGE] [--with PACKAGE]… [--python PYTHON] [--] PROGRAM [ARGUMENT]…`.
pub(super) fn parse(args: &[String], here: &Path) -> Result<Wanted, String> {
    let (mut from, mut with, mut python, mut rest) = (None, Vec::new(), None, args.iter());
    let command = loop {
        let argument = rest.next().ok_or("uvx: it names no program")?;
        let (option, inline) = split(argument);
        let mut of_option = || value(option, inline, &mut rest).map_err(|why| format!("uvx: {why}"));
        match option {
            "--from" => from = Some(package(of_option()?, here)?),
            "--with" => {
                for named in of_option()?.split(',') {
                    with.push(package(named, here)?);
                }
            }
            "-p" | "--python" => python = Some(interpreter(of_option()?)?),
            "--" if inline.is_none() => break rest.next().ok_or("uvx: it names no program")?,
            _ if argument.starts_with('-') => {
                return Err(format!("uvx: the argument '{argument}' is not understood"));
            }
            _ => break argument,
        }
    };
    let program = name(command).filter(|name| from.is_none() || *name == command);
    let program = program.ok_or_else(|| format!("uvx: '{command}' is not the name of a program"))?.to_owned();
    let from = match from {
        Some(from) => from,
        None => package(command, here)?,
    };
    let packages = std::iter::once(from).chain(with).collect();
    Ok(Wanted { source: Source::Python { packages, program, python }, args: rest.cloned().collect() })
}

/// The name that a package, such as `name[extra]==1.2`, begins with.
fn name(package: &str) -> Option<&str> {
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = package.find(|c| !may_be(c)).unwrap_or(package.len());
    let name = &package[..end];
    name.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some(name)
}

/// A package of the index with the versions that may follow it, or a wheel, as pip takes it. Others (`git+…`, URLs,
/// directories) would be built here from their sources.
fn package(text: &str, here: &Path) -> Result<String, String> {
    let wrong = || format!("uvx: '{text}' is neither a package of the index, as 'name@1.2.3', nor a wheel");
    if let Some(file) = file(text, here) {
        let file = file.map_err(|why| format!("uvx: {why}"))?;
        return if is_wheel(&file) { Ok(file) } else { Err(wrong()) };
    }
    let name = name(text).ok_or_else(wrong)?;
    let rest = &text[name.len()..];
    let (extras, versions) = match rest.strip_prefix('[').map(|rest| rest.split_once(']')) {
        None => ("", rest),
        Some(Some((extras, versions))) => (extras, versions),
        Some(None) => return Err(wrong()),
    };
    let are_extras = |c: char| c.is_ascii_alphanumeric() || "-_., ".contains(c);
    let are_versions = |c: char| c.is_ascii_alphanumeric() || "-_.+!*<>=~, ".contains(c);
    let named = &text[..text.len() - versions.len()];
    match versions.strip_prefix('@') {
        _ if !extras.chars().all(are_extras) => Err(wrong()),
        Some("latest") => Ok(named.to_owned()),
        Some(version) if !version.is_empty() && version.chars().all(are_versions) => {
            Ok(format!("{named}=={version}"))
        }
        None if versions.is_empty() => Ok(named.to_owned()),
        None if versions.starts_with(['<', '>', '=', '~', '!']) && versions.chars().all(are_versions) => {
            Ok(text.to_owned())
        }
        _ => Err(wrong()),
    }
}

fn is_wheel(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "whl")
}

/// Which Python: a version, or the path of one.
fn interpreter(text: &str) -> Result<String, String> {
    let is_version = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_version || Path::new(text).is_absolute() {
        return Ok(text.to_owned());
    }
    Err(format!("uvx: '{text}' is neither a version of Python, as '3.12', nor its absolute path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packages, program, interpreter, arguments.
    type Parsed = (Vec<String>, String, Option<String>, Vec<String>);

    fn parsed(args: &[&str]) -> Result<Parsed, String> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let Wanted { source, args } = parse(&args, Path::new("/"))?;
        let Source::Python { packages, program, python } = source else { panic!("not of Python") };
        Ok((packages, program, python, args))
    }

    /// SB-5: the program has the name of its package, whose version is written as pip writes it.
    #[test]
    fn a_package_is_read_with_its_version_and_its_arguments() {
        for (package, expect) in [
            ("a", "a"),
            ("a@1.2.3", "a==1.2.3"),
            ("a@latest", "a"),
            ("a==1.2", "a==1.2"),
            ("a>=1,<2", "a>=1,<2"),
            ("a[cli]", "a[cli]"),
            ("a[cli,x]@1", "a[cli,x]==1"),
        ] {
            let expect =
                (vec![expect.to_owned()], "a".to_owned(), None, vec!["--from".to_owned(), "b".to_owned()]);
            assert_eq!(parsed(&[package, "--from", "b"]), Ok(expect), "{package}");
        }
    }

    /// SB-5: where the program comes from, what lies beside it, and what runs it.
    #[test]
    fn options_say_where_the_program_comes_from() {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            parsed(&["--from", "a[cli]==1", "--with", "b@2,c", "--with=d", "-p", "3.12", "run", "-p"]),
            Ok((
                owned(&["a[cli]==1", "b==2", "c", "d"]),
                "run".to_owned(),
                Some("3.12".to_owned()),
                owned(&["-p"])
            ))
        );
        let python = "/usr/bin/python3";
        assert_eq!(parsed(&["--python=/usr/bin/python3", "--", "a"]).unwrap().2.as_deref(), Some(python));
    }

    /// SB-5: an argument that is not understood is named.
    #[test]
    fn what_is_not_understood_is_named() {
        for (args, expect) in [
            (&[][..], "uvx: it names no program"),
            (&["--from", "a"], "uvx: it names no program"),
            (&["--from"], "uvx: '--from' needs a value"),
            (&["--index-url", "x", "a"], "uvx: the argument '--index-url' is not understood"),
            (&["-q", "a"], "uvx: the argument '-q' is not understood"),
            (
                &["-p", "pypy", "a"],
                "uvx: 'pypy' is neither a version of Python, as '3.12', nor its absolute path",
            ),
            (&["--from", "a", "../run"], "uvx: '../run' is not the name of a program"),
            (&["--from", "a", "run@1"], "uvx: 'run@1' is not the name of a program"),
        ] {
            assert_eq!(parsed(args), Err(expect.to_owned()), "{args:?}");
        }
        for package in
            ["git+https://x/y", "https://x/y.whl", "a @ https://x/y", "-r", "a@", "a[x", "a;b", "/"]
        {
            let expect =
                format!("uvx: '{package}' is neither a package of the index, as 'name@1.2.3', nor a wheel");
            assert_eq!(parsed(&["--from", package, "run"]), Err(expect), "{package}");
        }
    }
}
