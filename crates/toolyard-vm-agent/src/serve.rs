//! Serves the one call of a machine.

use crate::{
    changes,
    files::{Files, path},
    fresh,
    port::Port,
    program,
};
use std::{convert::Infallible, io, path::PathBuf};
use toolyard_vm::protocol::{FromGuest, Run, ToGuest, VERSION};

/// Says hello, serves a call, and waits for the end of the machine.
pub(crate) fn serve(mut port: Port) -> io::Result<Infallible> {
    port.sender().send(&FromGuest::Hello { version: VERSION })?;
    let (mut files, mut input) = (Files::default(), Vec::new());
    let prepared = prepare(&mut port, &mut files, &mut input);
    let ran = prepared.and_then(|run| call(&run, files, input, &port));
    if let Err(error) = ran {
        // After the start the host takes this for the end of the machine.
        port.sender().send(&FromGuest::Failed(error.to_string()))?;
    }
    loop {
        port.receive()?;
    }
}

/// Takes what the host sends, up to the program.
fn prepare(port: &mut Port, files: &mut Files, input: &mut Vec<u8>) -> io::Result<Run> {
    loop {
        match port.receive()? {
            ToGuest::Begin { time_ns, entropy } => fresh::begin(time_ns, &entropy.0)?,
            ToGuest::Directory(directory) => files.directory(path(&directory))?,
            ToGuest::File(head) => files.file(&head)?,
            ToGuest::Content(content) => files.content(&content.0)?,
            ToGuest::Input(piece) => input.extend(piece.0),
            ToGuest::Run(run) => return Ok(run),
        }
    }
}

fn call(run: &Run, files: Files, input: Vec<u8>, port: &Port) -> io::Result<()> {
    let (sent, to) = (files.into_sent()?, port.sender());
    let status = program::run(run, input, to)?;
    to.send(&program::end(status))?;
    let places: Vec<PathBuf> = run.returned.iter().map(|place| path(place).to_owned()).collect();
    changes::tell(&places, &sent, to)?;
    to.send(&FromGuest::Done)
}
