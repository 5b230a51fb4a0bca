//! Where calls run: the host, and the sandboxes that this machine has.

use crate::RemoteSandbox;
use std::sync::Arc;
use toolyard::{Backend, Execution, HostBackend, Running, SandboxError};
use toolyard_core::Sandbox;

/// Executes calls where they are granted to run.
///
/// A sandbox that is not set here does not exist: its calls end as `sandbox_error` (SM-1).
///
/// # Examples
/// ```
/// use toolyard::Engine;
/// use toolyard_sandbox::Sandboxes;
/// let builder = Engine::builder().backend_around(|host| Sandboxes::new(host).into_backend());
/// # let _ = builder;
/// ```
pub struct Sandboxes {
    host: HostBackend,
    #[cfg(target_os = "linux")]
    process: Option<crate::ProcessSandbox>,
    remote: Option<RemoteSandbox>,
    #[cfg(feature = "wasm")]
    wasm: Option<crate::WasmSandbox>,
    #[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
    micro_vm: Option<crate::VmSandbox>,
}

impl Sandboxes {
    /// The host alone.
    pub fn new(host: HostBackend) -> Self {
        Self {
            host,
            #[cfg(target_os = "linux")]
            process: None,
            remote: None,
            #[cfg(feature = "wasm")]
            wasm: None,
            #[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
            micro_vm: None,
        }
    }

    /// Adds services on other machines.
    #[must_use]
    pub fn remote(mut self, remote: RemoteSandbox) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Adds confined processes: the sandboxes *process* and *landlock*.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn process(mut self, process: crate::ProcessSandbox) -> Self {
        self.process = Some(process);
        self
    }

    /// Adds WebAssembly modules.
    #[cfg(feature = "wasm")]
    #[must_use]
    pub fn wasm(mut self, wasm: crate::WasmSandbox) -> Self {
        self.wasm = Some(wasm);
        self
    }

    /// Adds virtual machines.
    #[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
    #[must_use]
    pub fn micro_vm(mut self, micro_vm: crate::VmSandbox) -> Self {
        self.micro_vm = Some(micro_vm);
        self
    }

    /// These as a back-end of an engine.
    pub fn into_backend(self) -> Arc<dyn Backend> {
        Arc::new(self)
    }

    #[cfg(target_os = "linux")]
    fn confine<'a>(
        &'a self,
        execution: &'a Execution<'a>,
        means: crate::Means,
    ) -> Result<Running<'a>, SandboxError> {
        match &self.process {
            Some(process) => process.execute(execution, means),
            None => Err(SandboxError::Unavailable(means.sandbox())),
        }
    }
}

impl Backend for Sandboxes {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        match execution.confinement.sandbox {
            Sandbox::Host => self.host.execute(execution),
            #[cfg(target_os = "linux")]
            Sandbox::Process => self.confine(execution, crate::Means::Namespaces),
            #[cfg(target_os = "linux")]
            Sandbox::Landlock => self.confine(execution, crate::Means::Landlock),
            #[cfg(feature = "wasm")]
            Sandbox::Wasm => match &self.wasm {
                Some(wasm) => wasm.execute(execution),
                None => Err(SandboxError::Unavailable(Sandbox::Wasm)),
            },
            #[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
            Sandbox::MicroVm => match &self.micro_vm {
                Some(micro_vm) => micro_vm.execute(execution),
                None => Err(SandboxError::Unavailable(Sandbox::MicroVm)),
            },
            Sandbox::Remote => match &self.remote {
                Some(remote) => remote.execute(execution),
                None => Err(SandboxError::Unavailable(Sandbox::Remote)),
            },
            other => Err(SandboxError::Unavailable(other)),
        }
    }
}
