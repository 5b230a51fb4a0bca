//! An engine whose calls run in machines.

use std::{fs, os::unix::fs::symlink, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use toolyard::{
    Call, ConfirmationMode, Confirmations, Engine, Grant, Outcome, PolicyRules, ResourceLimits, Rule,
    Sandbox, SideEffects, ToolSpec,
};
use toolyard_core::{Command, Program};
use toolyard_process::Helper;
use toolyard_sandbox::{PortableTool, Sandboxes, VmSandbox};
use toolyard_tools::Workspace;
use toolyard_vm::{Machines, Parts};

/// How many bytes of files the machines take.
pub(super) const FILES_MAX: u64 = 1 << 20;

/// Machines, with a mark that all their processes bear: the path by which they know their snapshots.
pub(super) struct Yard {
    machines: Machines,
    mark: TempDir,
}

/// Limits with a change.
pub(super) fn limited(change: impl FnOnce(&mut ResourceLimits)) -> ResourceLimits {
    let mut limits = ResourceLimits::unlimited();
    change(&mut limits);
    limits
}

impl Yard {
    pub(super) fn new(parts: Parts) -> Self {
        let mark = tempfile::tempdir().unwrap();
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
        fs::create_dir_all(&kept).unwrap();
        symlink(kept, mark.path().join("machines")).unwrap();
        let helper = Helper::this_program().unwrap();
        Self { machines: Machines::new(parts, mark.path().join("machines"), helper), mark }
    }

    /// A workspace with these files.
    pub(super) fn place(&self, files: &[(&str, &str)]) -> TempDir {
        let place = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        place
    }

    /// Calls a tool that is this script.
    pub(super) async fn call(
        &self,
        place: &TempDir,
        spec: ToolSpec,
        script: &str,
        limits: ResourceLimits,
    ) -> Outcome {
        self.call_and(place, spec, script, limits, || {}).await
    }

    /// The same, and does something while the program runs.
    pub(super) async fn call_and(
        &self,
        place: &TempDir,
        spec: ToolSpec,
        script: &str,
        limits: ResourceLimits,
        meanwhile: impl FnOnce(),
    ) -> Outcome {
        let program = Program::Command(Command::new("/usr/bin/sh").arg("-c").arg(script));
        let sandbox = VmSandbox::new(self.machines.clone()).files_max(FILES_MAX);
        let workspace = Workspace::open(place.path()).unwrap();
        workspace.guard(place.path().join("toolyard.toml"));
        let engine = Engine::builder()
            .tools(toolyard::Toolset::new(Vec::new()).workspace(Arc::new(workspace)))
            .confirmations(Confirmations::default().side_effects(SideEffects::Write, ConfirmationMode::Auto))
            .tool(PortableTool::new(spec, program))
            .policy(PolicyRules::new(Rule::Allow(Grant { limits, ..Grant::within(Sandbox::MicroVm) })))
            .backend_around(|host| Sandboxes::new(host).micro_vm(sandbox).into_backend());
        let engine = engine.build().await.unwrap();
        let session = engine.session("s");
        let call = session.call(Call::new("c", "t", "{}"));
        tokio::pin!(call);
        // Files have been copied once QEMU runs.
        tokio::select! {
            outcome = &mut call => return outcome,
            () = self.until_running() => meanwhile(),
        }
        call.await
    }

    async fn until_running(&self) {
        while self.census() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until no process with the mark is left.
    pub(super) async fn until_empty(&self) {
        for _ in 0..1500 {
            if self.census() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} processes are left", self.census());
    }

    /// How many living processes bear the mark.
    fn census(&self) -> usize {
        let mark = self.mark.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
    }
}
