//! Where programs connect.

use std::io;
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

/// What connections of programs are accepted from: a listener of TCP, or of a socket in the file system.
pub trait Listener: Send {
    /// A connection.
    type Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection.
    ///
    /// # Errors
    /// There is none, for now: for example because too many files are open.
    ///
    /// # Cancel safety
    /// No connection is lost when the future is dropped.
    fn next(&mut self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

impl Listener for TcpListener {
    type Connection = TcpStream;

    async fn next(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        // It works without, too.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Connection = UnixStream;

    async fn next(&mut self) -> io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}
