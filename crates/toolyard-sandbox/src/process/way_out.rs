//! The way out of a confined program: a door in its own network, and behind it a proxy that judges where it leads.
//!
//! ```text
//!   program and its children ─► 127.0.0.1, in their own network ─► Door ─► Proxy ─► Egress ─► a host that is granted
//!                                                                           └─► 403: any other
//! ```
//!
//! It is there as long as the program.

use std::{convert::Infallible, future::pending};
use toolyard::{Failure, ReachedHosts};
use toolyard_core::{Command, Host, HostPattern, ToolError, ToolOutput, Usage};
use toolyard_egress::{Addresses, Egress, PROXY_VARIABLES, Proxy, ProxyLimits, Traffic};
use toolyard_process::{Door, Program};

/// The proxy for one program.
#[derive(Debug)]
pub(super) struct WayOut(Proxy);

impl WayOut {
    /// A way out to these hosts, of which some may have private addresses, within these bounds.
    pub(super) fn new(
        hosts: ReachedHosts,
        egress: &Egress,
        private: Vec<HostPattern>,
        limits: ProxyLimits,
    ) -> Self {
        let may = move |host: &Host| {
            let is_private = || private.iter().any(|pattern| pattern.covers(host));
            hosts.covers(host).then(|| Addresses::with_private(is_private()))
        };
        Self(Proxy::new(egress).grant_by(may).limits(limits))
    }

    /// What passes through it.
    pub(super) fn traffic(&self) -> Traffic {
        self.0.traffic()
    }
}

/// Adds what passed through its way out to what a program used, where that is told (SB-9).
pub(super) fn counted(
    finished: Result<ToolOutput, ToolError>,
    traffic: Option<&Traffic>,
) -> Result<ToolOutput, ToolError> {
    let used = match &finished {
        Ok(output) => output.usage(),
        Err(error) => error.output().and_then(ToolOutput::usage),
    };
    let Some((used, traffic)) = used.zip(traffic) else { return finished };
    let counted = |used: Usage| used.network(traffic.connections(), traffic.bytes_up(), traffic.bytes_down());
    counted(used).told_in(finished)
}

/// Tells a program of its way out, unless its own variables say something else. They are for its convenience: there is
/// no other way, whatever they say.
pub(super) fn told(program: Program, command: &Command) -> Program {
    let proxy = format!("http://127.0.0.1:{}", Door::PORT);
    let is_own = |name: &&str| command.variables.iter().any(|variable| variable.name == *name);
    program.envs(PROXY_VARIABLES.into_iter().filter(|name| !is_own(name)).map(|name| (name, proxy.clone())))
}

/// Serves the door of a program that runs, until the future is dropped.
///
/// # Errors
/// [`Failure::Sandbox`]: the door did not open.
///
/// # Cancel safety
/// Dropping the future closes the door, and ends what went through it.
pub(super) async fn serve(way_out: Option<WayOut>, door: Option<Door>) -> Result<Infallible, Failure> {
    let Some((WayOut(proxy), door)) = way_out.zip(door) else { return pending().await };
    let opened = door.opened().await;
    let listener =
        opened.map_err(|error| Failure::Sandbox { why: format!("its way out: {error}"), started: true })?;
    Ok(proxy.serve(listener).await)
}
