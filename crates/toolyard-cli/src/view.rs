//! `toolyard view`: makes a page of an event log.

use crate::{
    audit::lines::LogLines, cli::ViewArgs, display::plain, error::Error, event_file::parts, exit::Exit,
    input::Origin, output_file::failed,
};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use toolyard::event::{Line, LineError};
use toolyard_page::Report;

/// The page of standard input, unless another file is named.
const OF_STDIN: &str = "toolyard-report.html";

/// What stands near the beginning of every page, by which one is known.
const SIGN: &str = "<title>Toolyard report</title>";

/// Writes the page and says where it is.
pub(crate) fn view(args: &ViewArgs) -> Result<Exit, Error> {
    let (origin, files) = match args.file.as_os_str() == "-" {
        true => (Origin::Stdin, Vec::new()),
        false => (Origin::File(args.file.clone()), parts::all(&args.file)?),
    };
    let to_stdout = args.out.as_ref().is_some_and(|out| out.as_os_str() == "-");
    if to_stdout && args.open {
        return Err(Error::Usage("--open needs a page in a file: name one with --out".to_owned()));
    }
    let (report, broken) = read(&origin, LogLines::of(&origin, &files)?)?;
    match broken {
        0 => {}
        1 => anstream::eprintln!("toolyard: 1 line breaks off and is left out; toolyard audit names it"),
        _ => anstream::eprintln!(
            "toolyard: {broken} lines break off and are left out; toolyard audit names them"
        ),
    }
    if to_stdout {
        let mut out = BufWriter::new(io::stdout().lock());
        return report.write(&mut out).map_err(Error::results).map(|()| Exit::Ok);
    }
    let path = write(args, &origin, &files, &report)?;
    writeln!(io::stdout(), "{}", path.display()).map_err(Error::results)?;
    if args.open {
        open(&path)?;
    }
    Ok(Exit::Ok)
}

/// Reads the events, and counts the lines that break off.
fn read(origin: &Origin, mut lines: LogLines) -> Result<(Report, u64), Error> {
    let (mut report, mut broken) = (Report::new(title(origin)), 0);
    while let Some(line) = lines.next() {
        let number = line.number;
        let wrong = |why: &dyn ToString| origin.line_error(number, plain(&why.to_string()));
        match line.text {
            Ok(text) => match Line::read(text) {
                Ok(_) => report.add(text).map_err(|why| wrong(&why))?,
                Err(LineError::NotJson(_)) => broken += 1,
                Err(why) => return Err(wrong(&why)),
            },
            Err(why) if why.may_be_torn() => broken += 1,
            Err(why) => return Err(wrong(&why)),
        }
    }
    match report.is_empty() {
        true => Err(origin.error("it contains no events")),
        false => Ok((report, broken)),
    }
}

fn title(origin: &Origin) -> String {
    match origin {
        Origin::Stdin => "standard input".to_owned(),
        Origin::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
    }
}

/// Writes the page to the file that is named, or to one beside the log.
fn write(args: &ViewArgs, origin: &Origin, log: &[PathBuf], report: &Report) -> Result<PathBuf, Error> {
    let path = match (&args.out, origin) {
        (Some(path), _) => path.clone(),
        (None, Origin::Stdin) => PathBuf::from(OF_STDIN),
        (None, Origin::File(log)) => log.with_extension("html"),
    };
    let is_log = log.iter().any(|part| same(part, &path));
    if is_log || (args.out.is_none() && !is_free(&path)) {
        let why = "holds something else: name a file for the page with --out";
        return Err(Error::Usage(format!("{} {why}", path.display())));
    }
    let written = File::create(&path).and_then(|file| report.write(&mut BufWriter::new(file)));
    written.map_err(|error| failed(&path, error))?;
    Ok(fs::canonicalize(&path).unwrap_or(path))
}

fn same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).ok().zip(fs::canonicalize(other).ok()).is_some_and(|(one, other)| one == other)
}

/// Whether there is nothing under this name but perhaps an earlier page.
fn is_free(path: &Path) -> bool {
    const ENOUGH: u64 = 4096;
    let Ok(file) = File::open(path) else { return true };
    let mut begin = Vec::new();
    let read = file.take(ENOUGH).read_to_end(&mut begin);
    read.is_ok() && (begin.is_empty() || String::from_utf8_lossy(&begin).contains(SIGN))
}

/// Opens the page as the desktop opens files.
fn open(path: &Path) -> Result<(), Error> {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut command = Command::new(program);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).map_err(|error| {
        Error::Usage(format!("the page is written, but {program} cannot be started to open it: {error}"))
    })
}
