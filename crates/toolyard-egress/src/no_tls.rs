//! Stands for TLS in a program that was built without it.

use crate::{not_sent::NotSent, origin::Destination, stream::Stream};
use std::{convert::Infallible, path::Path};
use tokio::net::TcpStream;

/// What connections are encrypted with: nothing, so there is none of these.
#[derive(Clone)]
pub(crate) struct Tls(Infallible);

impl Tls {
    pub(crate) fn new(_authorities: Option<&Path>) -> Result<Self, String> {
        Err("this program was built without TLS".to_owned())
    }

    pub(crate) async fn encrypt(&self, _to: &Destination, _stream: TcpStream) -> Result<Stream, NotSent> {
        match self.0 {}
    }
}
