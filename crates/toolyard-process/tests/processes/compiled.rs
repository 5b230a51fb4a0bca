//! The programs of these tests that are written in C, since they make calls that no library of ours makes.

use super::{missing::skip, yard::Yard};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

/// Compiles one of them into a file of the yard. `None` where there is no compiler; where tests must run, there has to be.
pub(super) fn compiled(yard: &Yard, source: &str, file: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = yard.path().join(file);
    match Command::new("cc").args(["-D_GNU_SOURCE", "-w", "-o"]).arg(&program).arg(source).status() {
        Ok(status) => assert!(status.success(), "it does not compile"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("there is no C compiler, cc");
            return None;
        }
        Err(error) => panic!("cc: {error}"),
    }
    Some(program)
}
