//! A program whose socket is its descriptor 3, and whose standard input is empty.
//!
//! No descriptor is given a number here: that is unsafe. A shell can, and becomes the program. Whether there is such a
//! program is looked at before, because a shell tells it by an exit code, which programs have too.

use crate::search;
use rustix::io::Errno;
use std::{ffi::OsStr, io, path::Path, process::Command};

const SHELL: &str = "/bin/sh";

/// What the shell does: its own input becomes descriptor 3.
const BECOME: &str = "exec \"$@\" 3<&0 </dev/null";

/// What starts the program of this name, which is searched in `path`, with its arguments still missing. Relative places are
/// in `directory`, or in that of this process.
///
/// # Errors
/// There is no such program, or it cannot be executed.
pub(crate) fn command(name: &OsStr, path: Option<&OsStr>, directory: Option<&Path>) -> io::Result<Command> {
    let place = search::find(name, path)?;
    let place = directory.map_or_else(|| place.clone(), |directory| directory.join(&place));
    place.metadata()?;
    if !search::is_program(&place) {
        return Err(Errno::ACCESS.into());
    }
    let mut command = Command::new(SHELL);
    command.args(["-c", BECOME, "sh"]).arg(name);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AG-4: what the shell would tell by a code is told as it is.
    #[test]
    fn a_program_that_is_not_there_is_no_exit_code() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("text"), "").unwrap();
        let refused = |name: &str| command(OsStr::new(name), None, Some(place.path())).unwrap_err().kind();
        assert_eq!(refused("no-such-program"), io::ErrorKind::NotFound);
        assert_eq!(refused("/no/such/program"), io::ErrorKind::NotFound);
        assert_eq!(refused("./none"), io::ErrorKind::NotFound);
        assert_eq!(refused("./text"), io::ErrorKind::PermissionDenied);
        command(OsStr::new("sh"), None, None).unwrap();
    }
}
