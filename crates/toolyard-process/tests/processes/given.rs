//! What programs are given, under every containment: that, all of it, and nothing else.

#[cfg(target_os = "linux")]
use super::{alone, confined, containments::helper};
use super::{
    containments,
    yard::{Yard, run},
};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
#[cfg(target_os = "linux")]
use toolyard_process::{Confinement, Containment};
use toolyard_process::{End, Program, Report};

fn has_succeeded(report: &Report) -> bool {
    matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0)))
}

/// Arguments may be any bytes.
#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let every: Vec<u8> = (1..=255).collect();
    let args = [b"".as_slice(), b"a b\n\"'\\", "ü€😀".as_bytes(), &every, b"-x"];
    for containment in containments::all() {
        let program = Program::new("/bin/sh").args(["-c", r#"printf '%s\0' "$@""#, "sh"]);
        let program = program.args(args.iter().map(|arg| OsStr::from_bytes(arg)));
        let mut started = program.start(&containment).unwrap();
        let mut output = Vec::new();
        started.stdout.read_to_end(&mut output).await.unwrap();
        let arrived: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        assert_eq!(arrived[..args.len()], args, "{containment:?}");
        assert!(has_succeeded(&started.processes.ended().await));
    }
}

/// The environment is what is named, any bytes, and no variable of this process.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn no_variable_is_inherited() {
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")), "there is something to inherit");
    let raw = OsStr::from_bytes(b"\xFF=\n\x01");
    for containment in containments::all() {
        let program = Program::new("/bin/cat").arg("/proc/self/environ").env("A", "").envs([("B", raw)]);
        let mut started = program.start(&containment).unwrap();
        let mut output = Vec::new();
        started.stdout.read_to_end(&mut output).await.unwrap();
        assert_eq!(output, b"A=\0B=\xFF=\n\x01\0", "{containment:?}");
    }
}

/// No descriptor of this process reaches a program.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn no_descriptor_is_inherited() {
    for containment in containments::all() {
        has_no_other_descriptor(Program::new("/bin/ls"), &containment).await;
    }
}

/// SB-4: nor does one of those that a confinement needs: of grants, the door, the helper, the filters.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn no_descriptor_is_inherited_by_what_is_confined() {
    let (yard, file) = (Yard::new(), "file");
    fs::write(yard.path().join(file), "").unwrap();
    let granted = |confinement: Confinement| {
        let file = yard.path().join(file);
        confinement.grant(File::open(&file).unwrap(), &file, false).keep(yard.path().join("kept"))
    };
    let mut confinements = Vec::new();
    if !confined::is_missing().await {
        let within = || confined::within(&yard.path(), true);
        confinements.extend([Confinement::new(), within(), granted(within()), within().door()]);
    }
    if !alone::is_missing() {
        let within = || alone::within(&yard.path(), true);
        confinements.extend([Confinement::new().landlock_alone(), within(), granted(within())]);
    }
    for confinement in confinements {
        has_no_other_descriptor(Program::new("/bin/ls").confined(confinement), &helper()).await;
    }
}

/// It has its three, however many of this process are open to be inherited.
#[cfg(target_os = "linux")]
pub(super) async fn has_no_other_descriptor(program: Program, containment: &Containment) {
    let stray: Vec<File> = (0..3).map(|_| File::open("/dev/null").unwrap()).collect();
    for stray in &stray {
        rustix::io::fcntl_setfd(stray, rustix::io::FdFlags::empty()).unwrap();
    }
    let program = program.arg("/proc/self/fd");
    let what = format!("{program:?} {containment:?}");
    let listed = run(program, containment).await.0;
    assert_eq!(listed, "0\n1\n2\n3\n", "3 is the directory that ls reads: {what}");
}

/// Standard input arrives whole, and ends when it is dropped.
#[tokio::test]
async fn input_is_delivered_and_closed() {
    for containment in containments::all() {
        let mut started = Program::new("/bin/cat").piped_input().start(&containment).unwrap();
        let mut input = started.stdin.take().unwrap();
        let text = "0123456789abcdef".repeat(1 << 16);
        let (_, output) = tokio::join!(
            async {
                input.write_all(text.as_bytes()).await.unwrap();
                drop(input);
            },
            async {
                let mut output = String::new();
                started.stdout.read_to_string(&mut output).await.unwrap();
                output
            }
        );
        assert!(output == text, "{containment:?}: {} of {} bytes", output.len(), text.len());
        assert!(has_succeeded(&started.processes.ended().await));
    }
}

/// A program that is given no input reads its end.
#[tokio::test]
async fn input_is_empty_by_default() {
    for containment in containments::all() {
        let started = Program::new("/bin/cat").start(&containment).unwrap();
        assert!(started.stdin.is_none());
        let (text, report) = run(Program::new("/bin/cat"), &containment).await;
        assert_eq!((text.as_str(), has_succeeded(&report)), ("", true), "{containment:?}");
    }
}

/// Standard output and error are one, in the order of arrival, unless they are apart.
#[tokio::test]
async fn outputs_are_one_or_apart() {
    let yard = Yard::new();
    let command = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    for containment in containments::all() {
        let (text, _) = yard.run(command, &containment).await;
        assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n", "{containment:?}");
        let mut started = yard.shell(command).errors_apart().start(&containment).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        started.stdout.read_to_string(&mut out).await.unwrap();
        started.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
        assert_eq!((out.as_str(), err.as_str()), ("out 1\nout 2\nout 3\n", "err 1\nerr 2\nerr 3\n"));
    }
}

/// PO-2: an open directory is the one that was opened, wherever its path leads by now.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn an_open_directory_cannot_be_swapped() {
    let yard = Yard::new();
    let (inside, moved) = (yard.path().join("inside"), yard.path().join("moved"));
    fs::create_dir(&inside).unwrap();
    let mut moved_already = false;
    for containment in containments::all() {
        let open = if moved_already { File::open(&moved) } else { File::open(&inside) }.unwrap();
        if !moved_already {
            fs::rename(&inside, &moved).unwrap();
            symlink("/", &inside).unwrap();
            moved_already = true;
        }
        let program = Program::new("/bin/sh").args(["-c", "pwd -P"]).open_directory(open, &inside);
        assert_eq!(run(program, &containment).await.0, format!("{}\n", moved.display()), "{containment:?}");
    }
}

/// A program starts in its directory, or not at all.
#[tokio::test]
async fn a_directory_that_is_not_there_is_an_error() {
    let yard = Yard::new();
    fs::write(yard.path().join("file"), "").unwrap();
    for containment in containments::all() {
        assert_eq!(yard.run("pwd -P", &containment).await.0, format!("{}\n", yard.path().display()));
        for (wrong, kind) in [("missing", io::ErrorKind::NotFound), ("file", io::ErrorKind::NotADirectory)] {
            let program = Program::new("/bin/sh").directory(yard.path().join(wrong));
            assert_eq!(program.start(&containment).unwrap_err().kind(), kind, "{containment:?}");
        }
    }
}

/// Nothing is started where nothing could watch it.
#[test]
fn a_program_needs_a_runtime() {
    for containment in containments::all() {
        let error = Program::new("/bin/true").start(&containment).unwrap_err();
        assert!(error.to_string().contains("runtime") || error.to_string().contains("reactor"), "{error}");
    }
}

/// A program that does not exist is an error, and so is one that was found by no path.
#[tokio::test]
async fn a_program_that_does_not_exist_is_an_error() {
    for containment in containments::all() {
        for program in [Program::new("/no/such/program"), Program::new("no-such-program")] {
            let why = match program.start(&containment) {
                Err(error) => error.to_string(),
                Ok(mut started) => {
                    let why = started.processes.started().await.unwrap_err();
                    assert_eq!(started.processes.ended().await, Report::NotStarted(why.clone()));
                    why.to_string()
                }
            };
            assert_eq!(why, "No such file or directory (os error 2)", "{containment:?}");
        }
    }
}
