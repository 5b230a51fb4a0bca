//! `toolyard init`: a commented configuration and a first tool (KT-14).
//!
//! ```text
//!   templates/ ─► template ─► files with their text ─► does one of them exist? ─┬─ yes: an error that names it
//!                                                                               └─ no: write all, or none
//! ```

mod name;
mod template;
mod write;

use crate::{
    cli::{InitArgs, Language},
    error::Error,
    exit::Exit,
    run::results,
};
use name::PackageName;
use std::{env, path::Path};
use template::{Template, TemplateFile};

/// Writes the files and says what to do next.
pub(crate) fn init(args: &InitArgs) -> Result<Exit, Error> {
    if args.lang == Language::Python && !cfg!(unix) {
        let why = "a program that is a tool runs on Unix alone: leave --lang python out, for tools in Rust";
        return Err(Error::Usage(why.to_owned()));
    }
    let template = match (args.lang, &args.name) {
        (Language::Rust, Some(name)) => Template::Rust(PackageName::parse(name)?),
        (Language::Rust, None) => Template::Rust(PackageName::of_dir(&args.dir)),
        (Language::Python, None) => Template::Python,
        (Language::Python, Some(_)) => {
            let why = "--name is the name of a Rust package: add --lang rust, or leave it out";
            return Err(Error::Usage(why.to_owned()));
        }
    };
    let files = template.files();
    write::all(&args.dir, &files)?;
    results::print_text(&said(&args.dir, &template, &files))?;
    if template == Template::Python && !has_python() {
        anstream::eprintln!(
            "toolyard: there is no python3 in PATH: install Python 3, or name yours in [program.count_words] command"
        );
    }
    Ok(Exit::Ok)
}

/// What was written, and the next commands.
fn said(dir: &Path, template: &Template, files: &[TemplateFile]) -> String {
    let written: String = files.iter().map(|file| format!("  {}\n", dir.join(file.path).display())).collect();
    let is_here = dir == Path::new(".") || dir.as_os_str().is_empty();
    let go = if is_here { String::new() } else { format!("  cd {}\n", quoted(dir)) };
    let next: String = template.next().iter().map(|line| format!("  {line}\n")).collect();
    format!("Written:\n{written}\nNext:\n{go}{next}")
}

/// The directory as a shell reads it.
fn quoted(dir: &Path) -> String {
    let text = dir.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | ':');
    let is_plain = |c: char| is_plain(c) || (cfg!(windows) && c == '\\');
    let begins_plain = !text.starts_with('-');
    match begins_plain && text.chars().all(is_plain) {
        true => text,
        false if begins_plain => format!("'{}'", text.replace('\'', r"'\''")),
        false => format!("./'{}'", text.replace('\'', r"'\''")),
    }
}

fn has_python() -> bool {
    let name = format!("python3{}", env::consts::EXE_SUFFIX);
    let Some(path) = env::var_os("PATH") else { return false };
    env::split_paths(&path).any(|dir| dir.join(&name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-14: the next command can be typed as it is shown.
    #[test]
    fn a_directory_is_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("a/b-c")), "a/b-c");
        assert_eq!(quoted(Path::new("my agent")), "'my agent'");
        assert_eq!(quoted(Path::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(Path::new("-x")), "./'-x'");
    }
}
