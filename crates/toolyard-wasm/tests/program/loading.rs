//! What is a module, and what is none.

use crate::runtime;
use std::fs;
use toolyard_test_modules::{ECHO, assemble, component};
use toolyard_wasm::{LoadError, Runtime, RuntimeOptions};

fn refused(bytes: &[u8]) -> String {
    runtime().load(bytes).unwrap_err().to_string()
}

/// SB-1: what is no module says why.
#[test]
fn what_is_no_module_says_why() {
    for bytes in [&b""[..], b"\0as", b"\x7fELF\x02", b"(module)", b"#!/bin/sh\n"] {
        assert_eq!(refused(bytes), "it is no WebAssembly module: it does not begin like one");
    }
    let echo = assemble(ECHO);
    assert!(refused(&echo[..echo.len() - 1]).starts_with("it is no valid WebAssembly module: "));
    assert!(matches!(runtime().load(b"\0asm\x02\0\0\0"), Err(LoadError::Invalid(_))));
    assert!(matches!(runtime().load_file("/no/such/file"), Err(LoadError::Unreadable(_))));
}

/// SB-1: a library is no command.
#[test]
fn what_is_no_command_says_so() {
    for text in [
        "(module)",
        "(module (func (export \"_start\") (param i32)))",
        "(module (memory (export \"_start\") 1))",
    ] {
        assert_eq!(refused(&assemble(text)), "it is no command: it exports no function '_start'");
    }
    assert!(refused(b"\0asm\x0d\0\x01\0").starts_with("it is no command: "));
}

/// SB-6: what nobody gives is not there: no function of the host beyond WASI, no sockets of extensions.
#[test]
fn what_is_not_given_is_named() {
    for (module, name) in [("env", "system"), ("wasi_snapshot_preview1", "sock_open")] {
        let text = format!("(module (import \"{module}\" \"{name}\" (func)) (func (export \"_start\")))");
        let why = refused(&assemble(&text));
        assert!(why.starts_with("it needs what no module is given here: ") && why.contains(name), "{why}");
    }
}

/// Threads, memories of 64 bits and several of them are not supported.
#[test]
fn what_is_not_supported_is_refused() {
    for memory in ["(memory 1 1 shared)", "(memory i64 1)", "(memory 1) (memory 1)"] {
        let bytes = assemble(&format!("(module {memory} (func (export \"_start\")))"));
        assert!(matches!(runtime().load(&bytes), Err(LoadError::Invalid(_))), "{memory}");
    }
}

/// Compiled code is kept in a directory that is this user's alone, and found there again.
#[test]
fn compiled_code_is_kept_for_this_user_alone() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("cache/wasm");
    for _ in 0..2 {
        let runtime = Runtime::new(RuntimeOptions::default().cache(&directory)).unwrap();
        runtime.load(&assemble(ECHO)).unwrap();
        runtime.load(&component(&assemble(ECHO))).unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = || fs::metadata(&directory).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        Runtime::new(RuntimeOptions::default().cache(&directory)).unwrap();
        assert_eq!(mode(), 0o700);
    }
    assert!(fs::read_dir(&directory).unwrap().next().is_some());
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Runtime::new(RuntimeOptions::default().cache(&file)).unwrap_err();
    assert!(error.to_string().starts_with("the directory for compiled modules, '"), "{error}");
}
