//! Where the program runs: in each sandbox the form that it has there, and what runs it; or what is missing.

use std::path::Path;
use toolyard::{Command, OutputKind, Program, ProgramIo, Service};
use toolyard_sandbox::{RemoteSandbox, Sandboxes};

/// The program in the form that a sandbox runs, and how that sandbox is added to an engine's.
pub(crate) struct Place {
    pub(crate) program: Program,
    pub(crate) add: Box<dyn FnOnce(Sandboxes) -> Sandboxes + Send>,
}

impl Place {
    fn new(program: Program, add: impl FnOnce(Sandboxes) -> Sandboxes + Send + 'static) -> Self {
        Self { program, add: Box::new(add) }
    }
}

/// The program as a command: a script that the system's shell is given.
fn command() -> Program {
    let shell =
        Command::new("/bin/sh").arg("-c").arg(include_str!("count.sh")).variable("PATH", "/usr/bin:/bin");
    Program::Command(shell.io(ProgramIo::Contract(OutputKind::Json)))
}

/// With the rights of this process.
pub(crate) fn host() -> Result<Place, String> {
    match cfg!(unix) {
        true => Ok(Place::new(command(), |sandboxes| sandboxes)),
        false => Err("it is a script for a shell that this system has not".to_owned()),
    }
}

/// Confined by the kernel.
#[cfg(target_os = "linux")]
pub(crate) async fn process() -> Result<Place, String> {
    let helper = toolyard_process::Helper::this_program().map_err(|error| error.to_string())?;
    let sandbox = toolyard_sandbox::ProcessSandbox::new(helper);
    sandbox.probe(toolyard_sandbox::Means::Namespaces).await?;
    Ok(Place::new(command(), |sandboxes| sandboxes.process(sandbox)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) async fn process() -> Result<Place, String> {
    Err("there is none but on Linux".to_owned())
}

/// On another machine; here the service listens on a port of this one.
pub(crate) fn remote(port: u16) -> Result<Place, String> {
    let mut service = Service::new(format!("http://127.0.0.1:{port}/"));
    (service.output, service.allow_private) = (OutputKind::Json, true);
    Ok(Place::new(Program::Http(service), |sandboxes| sandboxes.remote(RemoteSandbox::default())))
}

/// As a module, made from its text in a directory beside the workspace.
#[cfg(feature = "wasm")]
pub(crate) fn wasm(aside: &Path) -> Result<Place, String> {
    let runtime = toolyard_wasm::Runtime::new(toolyard_wasm::RuntimeOptions::default());
    let sandbox = toolyard_sandbox::WasmSandbox::new(runtime.map_err(|error| error.to_string())?);
    let binary = wat::parse_str(include_str!("count.wat")).map_err(|error| error.to_string())?;
    let file = aside.join("count.wasm");
    std::fs::write(&file, binary).map_err(|error| error.to_string())?;
    sandbox.prepare(&file).map_err(|error| error.to_string())?; // compiled now, not in the first call
    let mut module = toolyard::Module::new(file);
    module.output = OutputKind::Json;
    Ok(Place::new(Program::Wasm(module), |sandboxes| sandboxes.wasm(sandbox)))
}

#[cfg(not(feature = "wasm"))]
pub(crate) fn wasm(_: &Path) -> Result<Place, String> {
    Err("built without the feature wasm".to_owned())
}

/// In a virtual machine: the same command, in a system whose programs are busybox.
#[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
pub(crate) async fn micro_vm(aside: &Path) -> Result<Place, String> {
    let named = |name: &str| std::env::var_os(name).map(std::path::PathBuf::from);
    let parts = toolyard_vm::Wanted {
        kernel: named("TOOLYARD_VM_KERNEL"),
        modules: named("TOOLYARD_VM_MODULES"),
        agent: named("TOOLYARD_VM_AGENT"),
        ..Default::default()
    };
    let missing =
        |all: Vec<toolyard_vm::Missing>| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let parts = parts.find().map_err(missing)?;
    let helper = toolyard_process::Helper::this_program().map_err(|error| error.to_string())?;
    let machines = toolyard_vm::Machines::new(parts, aside.join("machines"), helper);
    let sandbox = toolyard_sandbox::VmSandbox::new(machines);
    sandbox.probe().await?; // boots a machine, from whose snapshot each call starts
    Ok(Place::new(command(), |sandboxes| sandboxes.micro_vm(sandbox)))
}

#[cfg(not(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64")))]
pub(crate) async fn micro_vm(_: &Path) -> Result<Place, String> {
    Err("built without the feature micro-vm, or not for Linux on x86_64".to_owned())
}
