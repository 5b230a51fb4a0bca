//! Virtual machines: the sandbox `micro_vm`, as the configuration sets it.
//!
//! ```text
//!   [sandbox.micro_vm] ─► Wanted ─┬─ all is there ─► VmSandbox ─► calls
//!                                 │                      └─────► setup: snapshots, a probe
//!                                 └─ missing ─► why, and how to get it: check, setup
//! ```
//!
//! Nothing is started before a call needs a machine, or `toolyard sandbox setup` makes one ready.

mod set_up;

pub(crate) use set_up::set_up;

use crate::{
    cache,
    config::{Accel, MachineSettings},
};
use std::{num::NonZeroU32, path::Path};
use toolyard_process::Helper;
use toolyard_sandbox::{Sandboxes, VmSandbox};
use toolyard_vm::{Parts, Wanted};

/// The memory of a machine in MiB where the configuration says nothing.
const MEMORY_MIB: NonZeroU32 = NonZeroU32::new(128).expect("it is not zero");

/// The machines of a configuration, or what is missing for them, a line each.
#[derive(Debug, Clone)]
pub(crate) struct Machines(Result<Box<Found>, Vec<String>>);

#[derive(Debug, Clone)]
struct Found {
    parts: Parts,
    machines: toolyard_vm::Machines,
    /// In MiB.
    memory: Vec<NonZeroU32>,
    sandbox: VmSandbox,
}

impl Default for Machines {
    fn default() -> Self {
        Self(Err(vec!["no configuration was read".to_owned()]))
    }
}

impl Machines {
    /// Looks for what machines are made of, for a workspace at `root`.
    pub(crate) fn found(settings: &MachineSettings, root: &Path) -> Self {
        Self(find(settings, root).map(Box::new))
    }

    /// Adds the sandbox.
    pub(crate) fn add_to(&self, sandboxes: Sandboxes) -> Sandboxes {
        match &self.0 {
            Ok(found) => sandboxes.micro_vm(found.sandbox.clone()),
            Err(_) => sandboxes,
        }
    }

    /// Whether all is there that machines are made of.
    pub(crate) fn exist(&self) -> bool {
        self.0.is_ok()
    }

    /// Whether the sandbox keeps this limit.
    pub(crate) fn keep(limit: &str) -> bool {
        VmSandbox::keeps(limit)
    }

    /// What `check` says of the sandbox. It boots none, which would take seconds.
    pub(crate) fn described(&self) -> String {
        match &self.0 {
            Ok(found) => {
                let sizes: Vec<String> = found.memory.iter().map(|size| format!("{size} MiB")).collect();
                format!(
                    "commands in a virtual machine of their own ({}), with copies of their files and no network; limits \
                     wall time, output, memory to {}",
                    found.parts.accel.as_str(),
                    sizes.join(" or ")
                )
            }
            Err(missing) => format!("not available: {}", missing.join("; ")),
        }
    }
}

fn find(settings: &MachineSettings, root: &Path) -> Result<Found, Vec<String>> {
    let MachineSettings { kernel, modules, agent, add, accel, memory, files_max } = settings.clone();
    let accel = match accel {
        Accel::Tcg => toolyard_vm::Accel::Tcg,
        Accel::Kvm => toolyard_vm::Accel::Kvm,
    };
    let parts = Wanted { kernel, modules, agent, add, accel }.find();
    let parts = parts.map_err(|missing| missing.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let one = |why: &str| vec![why.to_owned()];
    let helper = Helper::this_program().map_err(|error| one(&error.to_string()))?;
    // Who writes there puts a machine of his own in the place of ours.
    let directory = cache::directory(root, "vm").ok_or_else(|| {
        one("there is no cache directory for snapshots outside of the workspace: set XDG_CACHE_HOME")
    })?;
    let machines = toolyard_vm::Machines::new(parts.clone(), directory, helper);
    let memory = if memory.is_empty() { vec![MEMORY_MIB] } else { memory };
    let sandbox = VmSandbox::new(machines.clone()).memory(memory.iter().copied());
    let sandbox = match files_max {
        Some(bytes) => sandbox.files_max(bytes),
        None => sandbox,
    };
    Ok(Found { parts, machines, memory, sandbox })
}
