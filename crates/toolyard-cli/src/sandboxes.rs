//! The sandboxes of this machine, as the configuration sets them.

use crate::{
    config::Config,
    machines::Machines,
    modules::{self, Modules},
};
use std::{path::PathBuf, sync::Arc};
use toolyard::{Backend, HostBackend, Sandbox};
use toolyard_egress::Egress;
#[cfg(target_os = "linux")]
use toolyard_process::{landlock_alone_lacks, landlock_version};
#[cfg(target_os = "linux")]
use toolyard_sandbox::Means;
use toolyard_sandbox::{RemoteSandbox, Sandboxes};

/// Where the calls of an engine with this configuration execute.
pub(crate) fn backend(config: &Config, host: HostBackend) -> Arc<dyn Backend> {
    let egress = Egress::new();
    let remote = RemoteSandbox::new(egress.clone());
    #[cfg(feature = "otel")]
    let remote = remote.traced_by(toolyard_otel::traceparent);
    let sandboxes = config.modules.add_to(Sandboxes::new(host).remote(remote));
    let sandboxes = config.machines.add_to(sandboxes);
    #[cfg(target_os = "linux")]
    let sandboxes = match process(config) {
        Some(process) => sandboxes.process(process.egress(egress)),
        None => sandboxes,
    };
    sandboxes.into_backend()
}

/// The process sandbox; `None` in unit tests, whose `main` cannot help.
#[cfg(target_os = "linux")]
pub(crate) fn process(config: &Config) -> Option<toolyard_sandbox::ProcessSandbox> {
    let helper = toolyard_process::Helper::this_program().ok()?;
    let process = toolyard_sandbox::ProcessSandbox::new(helper);
    let crate::config::ProcessSettings { system, keeps_git, allow_private, net_bytes, cgroup } =
        &config.process;
    let process = process.system(system.iter().cloned()).keep_git(*keeps_git);
    let process = process.allow_private(allow_private.iter().cloned());
    let process = match net_bytes {
        Some(most) => process.net_bytes(Some(*most)),
        None => process,
    };
    Some(match cgroup {
        Some(cgroup) => process.cgroup(cgroup.clone()),
        None => process,
    })
}

/// What confined programs reach of the system.
pub(crate) fn system(config: &Config) -> Vec<PathBuf> {
    #[cfg(target_os = "linux")]
    let all = toolyard_process::SYSTEM.iter().map(PathBuf::from);
    #[cfg(not(target_os = "linux"))]
    let all = std::iter::empty();
    all.chain(config.process.system.iter().cloned()).collect()
}

/// Whether this program has this sandbox here.
pub(crate) fn exists(config: &Config, sandbox: Sandbox) -> bool {
    matches!(sandbox, Sandbox::Host | Sandbox::Remote)
        || cfg!(target_os = "linux") && matches!(sandbox, Sandbox::Process | Sandbox::Landlock)
        || modules::EXIST && sandbox == Sandbox::Wasm
        || config.machines.exist() && sandbox == Sandbox::MicroVm
}

/// Whether a sandbox keeps a limit on this machine.
pub(crate) fn keeps(config: &Config, sandbox: Sandbox, limit: &str) -> bool {
    #[cfg(target_os = "linux")]
    if let Some(means) = [Means::Namespaces, Means::Landlock].into_iter().find(|it| it.sandbox() == sandbox) {
        return lacks(config, means, limit).is_none();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = config;
    match sandbox {
        Sandbox::Wasm => Modules::keep(limit),
        Sandbox::MicroVm => Machines::keep(limit),
        _ => false,
    }
}

/// How services are reached.
const SCHEMES: &str = if cfg!(feature = "mcp-https") { "http or https" } else { "http alone" };

/// Whether calls in a sandbox can reach hosts that are granted.
pub(crate) fn reaches_hosts(sandbox: Sandbox) -> bool {
    sandbox != Sandbox::Landlock
}

/// What this machine enforces, a line for each sandbox (SB-4), and what *landlock* lacks if a rule names it.
pub(crate) async fn described(config: &Config, has_landlock: bool) -> Vec<(&'static str, String)> {
    let host = "confines nothing; limits wall time and output";
    let remote = format!("a service at its own origin, {SCHEMES}; limits wall time and output");
    vec![
        ("host", host.to_owned()),
        ("process", process_described(config).await),
        ("landlock", landlock_described(config, has_landlock).await),
        ("wasm", modules::DESCRIBED.to_owned()),
        ("micro_vm", config.machines.described()),
        ("remote", remote),
    ]
}

#[cfg(target_os = "linux")]
async fn process_described(config: &Config) -> String {
    let Some(process) = process(config) else {
        return "not available: this program cannot help it".to_owned();
    };
    if let Err(why) = process.probe(Means::Namespaces).await {
        return format!("not available: {why}");
    }
    let landlock = if landlock_version() > 0 { ", landlock" } else { " (the kernel has no landlock)" };
    let (limits, system) = (limits(config, Means::Namespaces), seen(config));
    format!(
        "files, processes and network by namespaces and seccomp{landlock}; granted hosts through a proxy; {limits}; \
         of the system {system}, read only"
    )
}

/// What programs in this sandbox see of this system.
#[cfg(target_os = "linux")]
fn seen(config: &Config) -> String {
    let own = toolyard_process::SYSTEM.iter().filter(|path| std::path::Path::new(path).exists());
    let own = own.map(|path| (*path).to_owned()).chain(["some files of /etc".to_owned()]);
    let added = config.process.system.iter().map(|path| path.display().to_string());
    own.chain(added).collect::<Vec<_>>().join(", ")
}

/// What is said of calls that are confined without namespaces.
#[cfg(target_os = "linux")]
async fn landlock_described(config: &Config, is_in_use: bool) -> String {
    let lacks = landlock_alone_lacks(landlock_version());
    let probed = match (process(config), &lacks) {
        (None, _) => Err("this program cannot help it".to_owned()),
        (Some(_), Err(why)) => Err(why.clone()),
        (Some(process), Ok(_)) => process.probe(Means::Landlock).await,
    };
    if let Err(why) = probed {
        return format!("not available: {why}");
    }
    let limits = limits(config, Means::Landlock);
    let what = format!("files by landlock, no sockets and no namespaces by seccomp; no network; {limits}");
    if !is_in_use {
        return format!("only where a rule says so, because it is weaker than process; {what}");
    }
    let lacks = lacks.unwrap_or_default().into_iter().map(|lacks| format!("{LACKS}{lacks}"));
    format!("{what}; weaker than process, which keeps what this does not:{}", lacks.collect::<String>())
}

/// What stands before each thing that a sandbox lacks: a line of its own, below what is said of it.
#[cfg(target_os = "linux")]
const LACKS: &str = "\n               - ";

/// Which limits these means keep here, and why not the others.
#[cfg(target_os = "linux")]
fn limits(config: &Config, means: Means) -> String {
    let (mut kept, mut unkept) = (vec!["wall time", "output"], Vec::<String>::new());
    for limit in LIMITS {
        match lacks(config, means, limit) {
            None => kept.push(limit),
            Some(why) => unkept.push(format!("{limit} ({why})")),
        }
    }
    let groups = config.process.cgroup.as_ref();
    let groups = groups.map(|cgroup| format!("; groups in '{}'", cgroup.path().display()));
    let unkept =
        if unkept.is_empty() { String::new() } else { format!("; cannot limit {}", unkept.join(", ")) };
    format!("limits {}{}{unkept}", kept.join(", "), groups.unwrap_or_default())
}

/// Why these means do not keep a limit here.
#[cfg(target_os = "linux")]
fn lacks<'a>(config: &'a Config, means: Means, limit: &str) -> Option<&'a str> {
    toolyard_sandbox::ProcessSandbox::lacks(means, limit, config.process.cgroup.as_ref())
}

#[cfg(not(target_os = "linux"))]
async fn process_described(_: &Config) -> String {
    "not available: it exists on Linux alone".to_owned()
}

#[cfg(not(target_os = "linux"))]
async fn landlock_described(_: &Config, _: bool) -> String {
    "not available: it exists on Linux alone".to_owned()
}

/// The limits that not every sandbox keeps.
#[cfg(target_os = "linux")]
const LIMITS: [&str; 6] =
    ["open files", "processes", "memory", "memory per process", "CPU time", "CPU time per process"];
