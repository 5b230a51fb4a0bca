//! What a sandbox cannot be given, although the call may use it (SB-4).

use toolyard_core::{FsMode, Opened, Sandbox};

/// Why a sandbox cannot be given what stands at a path that a call may use in this way; `None` if it can, or leaves it out.
/// Such a call is refused; this finds it out beforehand.
///
/// # Examples
/// ```
/// use toolyard_core::{FsMode, Opened, Sandbox};
/// use toolyard_sandbox::ungiven;
/// let directory = Opened::Directory(std::fs::File::open(".")?);
/// assert_eq!(ungiven(Sandbox::Process, FsMode::ReadWrite, &directory), None);
/// let why = ungiven(Sandbox::Process, FsMode::Write, &directory).unwrap();
/// assert_eq!(why, "which may be written and not read: a process reads what it writes");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn ungiven(sandbox: Sandbox, mode: FsMode, opened: &Opened) -> Option<&'static str> {
    match (sandbox, mode, opened) {
        (Sandbox::Host | Sandbox::Remote, ..) | (_, _, Opened::Link) | (_, FsMode::Read, _) => None,
        (_, FsMode::Write, _) => unread(sandbox),
        (Sandbox::Wasm, FsMode::ReadWrite, Opened::File(_)) => {
            Some("which is a file: a module writes in directories, so grant its directory")
        }
        (Sandbox::Wasm, FsMode::ReadWrite, Opened::Missing { .. }) => {
            Some("which does not exist: a module is given what does, so grant its directory")
        }
        (Sandbox::Process | Sandbox::Landlock, FsMode::ReadWrite, Opened::Missing { .. }) => {
            Some("which does not exist: a process is given what does, so grant its directory")
        }
        _ => None,
    }
}

/// Why a sandbox cannot be given anything that a call may write and not read; `None` if it gives nothing.
pub fn unread(sandbox: Sandbox) -> Option<&'static str> {
    match sandbox {
        Sandbox::Process | Sandbox::Landlock => {
            Some("which may be written and not read: a process reads what it writes")
        }
        Sandbox::Wasm => Some("which may be written and not read: a module reads what it writes"),
        Sandbox::MicroVm => Some("which may be written and not read: a machine is given copies"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    /// SB-4: what each sandbox cannot be given is known by the way in which it may be used, and by what stands there.
    #[test]
    fn each_sandbox_says_what_it_cannot_be_given() {
        let place = tempfile::tempdir().unwrap();
        let directory = || File::open(place.path()).unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        let [file, missing] = [
            Opened::File(File::open(place.path().join("file")).unwrap()),
            Opened::Missing { nearest: directory(), name: "new".into() },
        ];
        let directory = Opened::Directory(directory());
        use Sandbox::{Host, Landlock, MicroVm, Process, Remote, Wasm};
        for (sandbox, refused) in [
            (Host, [false; 4]),
            (Remote, [false; 4]),
            (Process, [true, false, false, true]),
            (Landlock, [true, false, false, true]),
            (Wasm, [true, false, true, true]),
            (MicroVm, [true, false, false, false]),
        ] {
            let found = [
                (FsMode::Write, &directory),
                (FsMode::ReadWrite, &directory),
                (FsMode::ReadWrite, &file),
                (FsMode::ReadWrite, &missing),
            ]
            .map(|(mode, opened)| ungiven(sandbox, mode, opened).is_some());
            assert_eq!(found, refused, "{sandbox:?}");
            for opened in [&directory, &file, &missing] {
                assert_eq!(ungiven(sandbox, FsMode::Read, opened), None, "{sandbox:?}");
            }
            assert_eq!(ungiven(sandbox, FsMode::Write, &Opened::Link), None, "{sandbox:?}");
        }
    }
}
