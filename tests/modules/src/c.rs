//! A program in C, compiled with a compiler and a library of the system.

use std::{env, fs, path::PathBuf, process::Command};

/// The program; its first argument says what it does.
pub const PROGRAM: &str = include_str!("program.c");

/// Where Debian has its parts.
const LIBRARIES: &str = "/usr/lib/wasm32-wasi";

/// The program, compiled by the compiler that `TOOLYARD_WASM_CC` names, `clang-14` or `clang`, with Debian's `wasi-libc`.
/// `None`, with a line that says so, where these are missing.
///
/// # Panics
/// When it cannot be compiled although `TOOLYARD_WASM_CC` says that it should be.
pub fn compiled() -> Option<Vec<u8>> {
    let told = env::var_os("TOOLYARD_WASM_CC");
    let candidates = told.iter().cloned().chain(["clang-14".into(), "clang".into()]);
    for compiler in candidates.take(if told.is_some() { 1 } else { 3 }) {
        match compile(&compiler) {
            Ok(module) => return Some(module),
            Err(why) if told.is_some() => panic!("{}: {why}", compiler.display()),
            Err(_) => {}
        }
    }
    eprintln!(
        "skipped: no C compiler for wasm32-wasi (Debian: clang-14 lld-14 wasi-libc libclang-rt-14-dev-wasm32)"
    );
    None
}

fn compile(compiler: &std::ffi::OsStr) -> Result<Vec<u8>, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (source, target): (PathBuf, PathBuf) =
        (directory.path().join("program.c"), directory.path().join("program.wasm"));
    fs::write(&source, PROGRAM).map_err(|error| error.to_string())?;
    let mut command = Command::new(compiler);
    command.args(["--target=wasm32-wasi", "-O1", "-Wall", "-Werror", "-o"]).arg(&target).arg(&source);
    if !fs::exists(LIBRARIES).unwrap_or_default() {
        return Err(format!("there is no {LIBRARIES}"));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => fs::read(&target).map_err(|error| error.to_string()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
