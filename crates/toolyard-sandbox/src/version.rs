//! The version of a tool that is a program: a hash of what it is made of (SM-7).

use sha2::{Digest as _, Sha256};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};
use toolyard_core::{Command, ContentHash, Module, OutputKind, Program, ProgramIo, Service, Variable};

/// A hash of the program's form.
pub(crate) fn of(program: &Program) -> ContentHash {
    match program {
        Program::Command(command) => of_command(command),
        Program::Wasm(module) => of_module(module),
        Program::Http(service) => of_service(service),
        other => ContentHash::new("toolyard program 1").text(other.form().as_str()),
    }
}

/// Adds the content of a file that the program is made of.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn with_file(hash: ContentHash, file: &Path) -> io::Result<ContentHash> {
    let (mut content, mut file_content) = (Sha256::new(), BufReader::new(File::open(file)?));
    loop {
        let piece = file_content.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        content.update(piece);
        let length = piece.len();
        file_content.consume(length);
    }
    Ok(hash.path(file).bytes(&content.finalize()))
}

fn of_command(command: &Command) -> ContentHash {
    let Command { program, arguments, variables, directory, files, io, output_bytes, .. } = command;
    let hash = ContentHash::new("toolyard command 1").path(program).path(directory);
    let hash = hash.list(arguments.iter().map(|argument| os_text(argument)));
    let hash = hash.list(variables.iter().map(variable)).number(*output_bytes as u64);
    let hash = hash.list(files.iter().map(|file| ContentHash::new("file").path(file).finish()));
    match io {
        ProgramIo::Terminal(_) => hash.text("terminal"),
        ProgramIo::Contract(kind) => output(hash, *kind),
    }
}

fn of_module(module: &Module) -> ContentHash {
    let hash = ContentHash::new("toolyard module 1").path(&module.file).number(module.output_bytes as u64);
    let hash = hash.list(module.arguments.iter().map(|argument| os_text(OsStr::new(argument))));
    output(hash.list(module.variables.iter().map(variable)), module.output)
}

fn of_service(service: &Service) -> ContentHash {
    let header =
        |(name, value): &(String, String)| ContentHash::new("header").text(name).text(value).finish();
    let hash = ContentHash::new("toolyard service 1").text(&service.url);
    let hash = hash.list(service.headers.iter().map(header)).number(service.output_bytes as u64);
    output(hash.number(service.allow_private.into()), service.output)
}

fn output(hash: ContentHash, kind: OutputKind) -> ContentHash {
    hash.text("contract").text(kind.as_str())
}

fn os_text(text: &OsStr) -> [u8; 32] {
    ContentHash::new("argument").bytes(text.as_encoded_bytes()).finish()
}

fn variable(Variable { name, value }: &Variable) -> [u8; 32] {
    ContentHash::new("variable").text(name).bytes(value.as_encoded_bytes()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use toolyard_core::Terminal;

    /// SM-7: every part of the form counts.
    #[test]
    fn every_part_of_the_form_counts() {
        let command = || Command::new("/bin/a");
        let json = ProgramIo::Contract(OutputKind::Json);
        let service = Service::new("http://a/");
        let mut private = service.clone();
        private.allow_private = true;
        let forms = [
            Program::Command(command()),
            Program::Command(Command::new("/bin/b")),
            Program::Command(command().arg("a")),
            Program::Command(command().arg("a").arg("")),
            Program::Command(command().variable("A", "a")),
            Program::Command(command().variable("A", "b")),
            Program::Command(command().directory("a")),
            Program::Command(command().io(json)),
            Program::Command(
                command().io(ProgramIo::Terminal(Terminal { command: "a".into(), limit: None })),
            ),
            Program::Command(command().files(["/b"])),
            Program::Command(command().output_bytes(1)),
            Program::Wasm(Module::new("/bin/a")),
            Program::Http(service),
            Program::Http(private),
        ];
        let hashes: HashSet<_> = forms.iter().map(|form| of(form).finish()).collect();
        assert_eq!(hashes.len(), forms.len());
    }

    /// SM-7: so does the content of its files.
    #[test]
    fn the_content_of_its_files_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let hash = || with_file(of(&Program::Wasm(Module::new("a"))), file.path()).unwrap().finish();
        let before = hash();
        assert_eq!(hash(), before);
        std::fs::write(file.path(), "changed").unwrap();
        assert_ne!(hash(), before);
    }
}
