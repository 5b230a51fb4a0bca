//! Daemons of this machine: their sockets, with a file and without, are reached by nothing that is confined.
//!
//! Without the confinement the same program reaches each of them, so that it is this which closes the way.

use super::{
    alone,
    compiled::compiled,
    confined,
    containments::helper,
    yard::{Yard, run},
};
use std::{
    ffi::OsString,
    fs::{self, Permissions},
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::PermissionsExt as _,
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::Path,
};
use toolyard_process::{Confinement, End, Program, Report};

/// One daemon: it listens for streams, and for datagrams beside them.
struct Daemon {
    place: OsString,
    streams: UnixListener,
    datagrams: UnixDatagram,
}

impl Daemon {
    /// With files that everybody may connect to.
    fn named(path: &Path) -> Self {
        let beside = path.with_extension("datagrams");
        let (streams, datagrams) = (UnixListener::bind(path).unwrap(), UnixDatagram::bind(&beside).unwrap());
        for path in [path, &beside] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        Self { place: path.into(), streams, datagrams }.waits_for_nobody()
    }

    /// Without files.
    fn nameless(yard: &Yard) -> Self {
        let name = yard.path().display().to_string().replace('/', "-");
        let address = |behind: &str| SocketAddr::from_abstract_name(format!("{name}{behind}")).unwrap();
        let streams = UnixListener::bind_addr(&address("")).unwrap();
        let datagrams = UnixDatagram::bind_addr(&address(".datagrams")).unwrap();
        Self { place: format!("@{name}").into(), streams, datagrams }.waits_for_nobody()
    }

    fn waits_for_nobody(self) -> Self {
        self.streams.set_nonblocking(true).unwrap();
        self.datagrams.set_nonblocking(true).unwrap();
        self
    }

    /// Whether somebody connected, and whether somebody sent something.
    fn was_reached(&self) -> (bool, bool) {
        let by_nobody = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let connected = self.streams.accept().map_err(by_nobody).is_ok();
        (connected, self.datagrams.recv(&mut [0]).map_err(by_nobody).is_ok())
    }
}

/// Tries to reach a daemon outside, one within what is granted, and one without a file. Returns what was said, and which
/// were reached; `None` where the program cannot be compiled.
async fn tried(
    confinement: impl FnOnce(&Path) -> Option<Confinement>,
) -> Option<(String, Vec<(bool, bool)>)> {
    let (yard, outside) = (Yard::new(), Yard::new());
    let program = compiled(&yard, "daemons.c", "daemons")?;
    let daemons = [
        Daemon::named(&outside.path().join("outside")),
        Daemon::named(&yard.path().join("inside")),
        Daemon::nameless(&yard),
    ];
    let program = Program::new(program).args(daemons.iter().map(|daemon| &daemon.place));
    let program = program.directory(yard.path());
    let program = match confinement(&yard.path()) {
        Some(confinement) => program.confined(confinement),
        None => program,
    };
    let (text, report) = run(program, &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}: {text}");
    assert!(!text.contains("needed"), "{text}");
    Some((text, daemons.iter().map(Daemon::was_reached).collect()))
}

/// None was reached, and every way ended with an error.
fn is_reached_by_nothing((text, reached): (String, Vec<(bool, bool)>)) {
    assert_eq!(reached, [(false, false); 3], "{text}");
    assert!(!text.contains(": done"), "{text}");
    assert_eq!(text.lines().count(), 3 * 11, "{text}");
}

/// SB-4: in the sandbox *process*, without and with a way out,
#[tokio::test]
async fn a_process_reaches_no_daemon() {
    if confined::is_missing().await {
        return;
    }
    for has_door in [false, true] {
        let confinement = |path: &Path| {
            let within = confined::within(path, true);
            Some(if has_door { within.door() } else { within })
        };
        let Some(tried) = tried(confinement).await else { return };
        is_reached_by_nothing(tried);
    }
}

/// in the sandbox *landlock*,
#[tokio::test]
async fn nothing_under_landlock_reaches_a_daemon() {
    if alone::is_missing() {
        return;
    }
    let Some(tried) = tried(|path| Some(alone::within(path, true))).await else { return };
    is_reached_by_nothing(tried);
}

/// and without either all of them are reached.
#[tokio::test]
async fn what_is_not_confined_reaches_every_daemon() {
    let Some((text, reached)) = tried(|_| None).await else { return };
    assert_eq!(reached, [(true, true); 3], "{text}");
}
