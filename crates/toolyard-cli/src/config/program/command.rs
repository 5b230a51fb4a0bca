//! A program that is started for each call.

use super::{
    super::{
        section::Section,
        variables::{self, Variable},
    },
    Made, in_configuration,
};
use std::{
    env,
    ffi::OsStr,
    ops::Range,
    path::{MAIN_SEPARATOR, Path, PathBuf},
};
use toolyard::{Command, OutputKind, Program, ProgramIo};

/// Takes what says that the tool is a command.
pub(super) fn take(
    at: &Range<usize>,
    section: &mut Section<'_>,
    here: &Path,
    output: OutputKind,
    output_bytes: usize,
) -> Option<Made> {
    let words = section.strings("command");
    let directory = section.string("cwd").map(|(directory, _)| directory);
    let variables = variables::read(section.section("env"));
    let Some(words) = words else {
        if !section.was_given("command")
            && !section.is_mistyped("command")
            && !section.was_given("url")
            && !section.is_mistyped("url")
            && !section.is_mistyped("wasm")
        {
            let what = format!(
                "{}needs a command, such as [\"./count\", \"--json\"], a wasm module, or a url",
                section.prefix()
            );
            section.report(at, what);
        }
        return None;
    };
    let Some((program, arguments)) = words.split_first() else {
        let what =
            format!("{}command must name a program, such as [\"./count\", \"--json\"]", section.prefix());
        section.report(at, what);
        return None;
    };
    let program = match resolve(here, program) {
        Ok(program) => program,
        Err(what) => {
            section.report(&program.1, format!("{}command: {what}", section.prefix()));
            return None;
        }
    };
    // A program that is searched for is the system's; one that is named by its place is the configuration's.
    let mut files: Vec<PathBuf> = if is_path(&words[0].0) { vec![program.clone()] } else { Vec::new() };
    let mut command = Command::new(program).io(ProgramIo::Contract(output)).output_bytes(output_bytes);
    for argument in arguments {
        if is_beside(&argument.0) {
            let file = in_configuration(here, argument);
            files.extend(file.is_file().then(|| file.clone()));
            command = command.arg(file);
        } else {
            command = command.arg(&argument.0);
        }
    }
    let mut secrets = Vec::new();
    for Variable { name, value, is_secret } in variables {
        secrets.extend(is_secret.then(|| value.clone()));
        command = command.variable(name, value);
    }
    if let Some(directory) = directory {
        command = command.directory(directory);
    }
    let also = section_files(section, here);
    let command = command.files(files.iter().cloned().chain(also));
    Some(Made { program: Program::Command(command), files, secrets })
}

/// Takes the files and directories that the program needs beside itself, such as its libraries.
fn section_files(section: &mut Section<'_>, here: &Path) -> Vec<PathBuf> {
    let files = section.strings("files").unwrap_or_default();
    let file = |placed: &(String, Range<usize>)| {
        let file = in_configuration(here, placed);
        if !file.exists() {
            let what = format!("{}files: there is no '{}'", section.prefix(), file.display());
            section.report(&placed.1, what);
        }
        file
    };
    files.iter().map(file).collect()
}

/// Whether this names a program by its place.
fn is_path(program: &str) -> bool {
    program.contains(['/', MAIN_SEPARATOR])
}

/// Whether an argument names a place relative to the configuration.
fn is_beside(argument: &str) -> bool {
    argument.starts_with("./") || argument.starts_with("../")
}

/// The program's path, or why there is none. A name without a directory is searched as a shell does, once: what stands
/// there later under the same name in another directory does not run instead.
fn resolve(here: &Path, placed: &(String, Range<usize>)) -> Result<PathBuf, String> {
    let name = &placed.0;
    if is_path(name) {
        let path = in_configuration(here, placed);
        return match path.is_file() {
            true => Ok(path),
            false => Err(format!("there is no file '{}'", path.display())),
        };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let candidates = env::split_paths(&path).filter(|directory| directory.is_absolute());
    let found =
        candidates.flat_map(|directory| spellings(&directory.join(name))).find(|file| is_program(file));
    found.ok_or_else(|| format!("no program called '{name}' is in PATH"))
}

/// The file names under which a program of this name may be found.
fn spellings(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let with_extension = cfg!(windows).then(|| path.with_extension(OsStr::new("exe")));
    [path.to_owned()].into_iter().chain(with_extension)
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}
