//! The serial port to the host.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, Read, Write as _},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use toolyard_vm::protocol::{FromGuest, ToGuest, line, read_line};

/// The first port of the first virtio-serial device; number 0 is kept for a console.
const DEVICE: &str = "/dev/vport0p1";

/// How often the device is looked for, and how long in between: it appears a moment after its module is loaded.
const TRIES: usize = 500;
const BETWEEN: Duration = Duration::from_millis(10);

/// How long to wait before reading again while nobody is connected.
const UNCONNECTED: Duration = Duration::from_millis(1);

/// Both directions.
pub(crate) struct Port {
    reader: BufReader<Connected>,
    sender: Sender,
}

/// The direction to the host, for several threads.
#[derive(Clone)]
pub(crate) struct Sender(Arc<Mutex<File>>);

/// Reads from the port: nothing is there while nobody is connected, which is not the end.
struct Connected(File);

impl Port {
    /// Opens the port.
    pub(crate) fn open() -> io::Result<Self> {
        let mut tries = 0;
        let file = loop {
            match OpenOptions::new().read(true).write(true).open(DEVICE) {
                Ok(file) => break file,
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => wait(BETWEEN),
            }
            tries += 1;
        };
        let sender = Sender(Arc::new(Mutex::new(file.try_clone()?)));
        Ok(Self { reader: BufReader::with_capacity(64 << 10, Connected(file)), sender })
    }

    /// What the host says next.
    pub(crate) fn receive(&mut self) -> io::Result<ToGuest> {
        read_line(&mut self.reader)
    }

    /// The direction to the host.
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }
}

impl Sender {
    /// Says something to the host.
    pub(crate) fn send(&self, message: &FromGuest) -> io::Result<()> {
        let line = line(message)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

impl Read for Connected {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Ok(0) if !buffer.is_empty() => wait(UNCONNECTED),
                read => return read,
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no async runtime in the machine")]
fn wait(time: Duration) {
    thread::sleep(time);
}
