//! A program that runs another in a virtual machine and waits for it: tests start it, kill it, and have it help.
//!
//! ```text
//! toolyard-vm-engine DIRECTORY COMMAND    runs `sh -c COMMAND` with the snapshots of that directory, prints its errors
//! ```

use std::error::Error;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod found;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn Error>> {
    toolyard_process::help_if_asked();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run())
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
async fn run() -> Result<(), Box<dyn Error>> {
    use toolyard_vm::{Call, Machines};
    let mut args = std::env::args().skip(1);
    let (directory, command) = (args.next().ok_or("no DIRECTORY")?, args.next().ok_or("no COMMAND")?);
    let parts = found::parts().ok_or("no parts")?;
    let machines = Machines::new(parts, directory, toolyard_process::Helper::this_program()?);
    let call = Call::new("sh").arguments(["-c".to_owned(), command]).variable("PATH", "/bin");
    let call = call.on_errors(|text| print!("{text}"));
    println!("{:?}", machines.run(128, call, std::future::pending()).await?.end);
    Ok(())
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> Result<(), Box<dyn Error>> {
    Err("there are no virtual machines here".into())
}
