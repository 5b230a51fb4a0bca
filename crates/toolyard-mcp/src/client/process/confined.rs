//! A server that reaches what it is given and nothing else.
//!
//! ```text
//!   ServerConfinement ─► paths, opened ─► Confinement ─► a helper ─► the server, confined
//!                        hosts ─────────► Door ◄───────── what it connects to
//!                                           └─► Proxy ─► a host that is named
//! ```

use super::environment;
use crate::client::config::{ServerConfig, ServerConfinement};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_util::task::AbortOnDropHandle;
use toolyard::HostPattern;
use toolyard_egress::{Addresses, Egress, Observer, PROXY_VARIABLES, Proxy, Visit};
use toolyard_process::{Confinement, Door, Program, Reached, git_files, plain_path};

/// The directory of a server whose own is not reached, and the home of all.
const HOME: &str = "/tmp";

/// The variables of this process that mean something inside.
const INHERITED: [&str; 8] = ["LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "TERM", "TZ", "USER"];

/// The program of a server, confined. Its arguments and its own variables are still missing.
///
/// # Errors
/// Which path cannot be opened, and why; that its directory is not reached; or which limit is not kept here.
pub(super) fn program(config: &ServerConfig, given: &ServerConfinement) -> io::Result<Program> {
    let mut reached = reached(given)?;
    let kept = kept(&reached, given);
    let command = if is_named_by_place(&config.command) {
        let command = plain_path(&config.command)?;
        reached.read(&command)?;
        command
    } else {
        config.command.clone()
    };
    let directory = directory(&reached, config.cwd.as_deref())?;
    let inherited = environment::inherited().filter(|(name, _)| INHERITED.contains(name));
    let program = Program::new(command).envs(inherited).env("HOME", HOME).directory(directory);
    let confinement = kept.into_iter().fold(reached.confinement(), Confinement::keep);
    let confinement = confinement.lasting(given.limits, given.cgroup.as_ref())?;
    if given.hosts.is_empty() {
        return Ok(program.confined(confinement));
    }
    let proxy = format!("http://127.0.0.1:{}", Door::PORT);
    let program = program.envs(PROXY_VARIABLES.map(|name| (name, proxy.clone())));
    Ok(program.confined(confinement.door()))
}

/// Serves the door of the server of this name that has started, until the handle is dropped. Each connection is logged
/// when it has ended (SB-10).
///
/// # Errors
/// Why the door did not open.
pub(super) async fn serve(
    door: Door,
    server: &str,
    given: &ServerConfinement,
) -> io::Result<AbortOnDropHandle<()>> {
    let listener = door.opened().await?;
    let (hosts, private) = (given.hosts.clone(), given.private.clone());
    let covers = |patterns: &[HostPattern], host: &_| patterns.iter().any(|pattern| pattern.covers(host));
    let may = move |host: &_| covers(&hosts, host).then(|| Addresses::with_private(covers(&private, host)));
    let proxy = Proxy::new(&Egress::new()).grant_by(may).observer(Arc::new(Log(server.to_owned())));
    Ok(AbortOnDropHandle::new(tokio::spawn(async move { match proxy.serve(listener).await {} })))
}

/// Logs the connections of the server of this name.
struct Log(String);

impl Observer for Log {
    fn visited(&self, visit: &Visit) {
        let Visit { to, verdict, bytes_up, bytes_down, .. } = visit;
        tracing::debug!(server = self.0, to, ?verdict, bytes_up, bytes_down, "a connection of an MCP server");
    }
}

/// Whether a program is named by where it lies, and not searched for in `PATH`.
fn is_named_by_place(command: &Path) -> bool {
    command.components().count() > 1
}

/// What a server reaches.
fn reached(given: &ServerConfinement) -> io::Result<Reached> {
    let mut reached = Reached::new(given.system.iter().cloned());
    for path in &given.paths {
        reached.add(plain_path(&path.path)?, path.is_writable)?;
    }
    Ok(reached)
}

/// The places of what is not written, although it lies in what is.
fn kept(reached: &Reached, given: &ServerConfinement) -> Vec<PathBuf> {
    let writable = || reached.paths().iter().filter(|path| path.is_writable);
    let git = writable().filter(|_| given.keeps_git).flat_map(|path| git_files(&path.at));
    let named = given.kept.iter().filter_map(|kept| plain_path(kept).ok());
    let named = named.flat_map(|kept| {
        let lies = lies(&kept);
        writable().filter_map(move |path| Some(path.at.join(lies.strip_prefix(&path.lies).ok()?)))
    });
    git.chain(named).collect()
}

/// The directory that it starts in: its own, which it must reach, or that of this process if it reaches that.
fn directory(reached: &Reached, own: Option<&Path>) -> io::Result<PathBuf> {
    let Some(own) = own else {
        let ours = std::env::current_dir()?;
        return Ok(if reached.covers(&ours) { ours } else { HOME.into() });
    };
    let own = plain_path(own)?;
    if reached.covers(&own) {
        return Ok(own);
    }
    let why = format!("it does not reach its directory '{}'", own.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Where a path lies, with links resolved as far as it exists.
fn lies(path: &Path) -> PathBuf {
    let of_parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    /// A directory, and a link to it.
    fn linked() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let lies = place.path().canonicalize().unwrap().join("lies");
        let link = lies.with_file_name("link");
        fs::create_dir(&lies).unwrap();
        symlink(&lies, &link).unwrap();
        (place, lies, link)
    }

    /// SB-11: what governs is kept where the server finds it, whatever it is called outside; what git runs too.
    #[test]
    fn what_governs_is_kept_where_the_server_finds_it() {
        let (_place, lies, link) = linked();
        let given = ServerConfinement::new().write(&link).keep([lies.join("toolyard.toml")]);
        let kept = |given: &ServerConfinement| kept(&reached(given).unwrap(), given);
        let wanted: Vec<_> = git_files(&link).chain([link.join("toolyard.toml")]).collect();
        assert_eq!(kept(&given), wanted);
        assert_eq!(kept(&given.clone().keep_git(false)), [link.join("toolyard.toml")]);
        assert!(kept(&ServerConfinement::new().read(&link)).is_empty());
    }

    /// SB-5: a server starts in its own directory, or where this process is, if it reaches that.
    #[test]
    fn a_server_starts_where_it_reaches() {
        let (_place, lies, link) = linked();
        let in_link = reached(&ServerConfinement::new().read(&link)).unwrap();
        assert_eq!(directory(&in_link, Some(&link)).unwrap(), link);
        assert_eq!(directory(&in_link, None).unwrap(), Path::new(HOME));
        let why = directory(&in_link, Some(&lies)).unwrap_err().to_string();
        assert_eq!(why, format!("it does not reach its directory '{}'", lies.display()));
        let ours = std::env::current_dir().unwrap();
        let in_ours = reached(&ServerConfinement::new().read(&ours)).unwrap();
        assert_eq!(directory(&in_ours, None).unwrap(), ours);
        let missing = reached(&ServerConfinement::new().read(lies.join("none"))).err().unwrap();
        assert_eq!(
            missing.to_string(),
            format!("'{}/none': No such file or directory (os error 2)", lies.display())
        );
    }
}
