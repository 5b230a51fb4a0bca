//! Reads the bodies of requests, bounded in time, in size, and together.

use super::limits::Arriving;
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use std::{pin::pin, time::Duration};

/// Time limit for receiving the body of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body of at most `max` bytes, which take their room as they arrive.
///
/// # Errors
/// The status with which the request is refused.
///
/// # Cancel safety
/// Dropping the future drops what was read, and gives the room back if `arriving` is dropped too.
pub(super) async fn read<B>(body: B, max: usize, arriving: &mut Arriving) -> Result<Bytes, StatusCode>
where
    B: Body<Data = Bytes>,
{
    // A client that announces too much does not have to send it.
    if body.size_hint().lower() > max as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let read = collect(body, max, arriving);
    tokio::time::timeout(TIMEOUT, read).await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

async fn collect<B>(body: B, max: usize, arriving: &mut Arriving) -> Result<Bytes, StatusCode>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        // Trailers are of no use here.
        let Ok(data) = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data() else { continue };
        if data.len() > max - read.len() {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if !arriving.add(data.len()) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        read.extend_from_slice(&data);
    }
    Ok(read.into())
}

#[cfg(test)]
mod tests {
    use super::{
        super::limits::{ClientLimits, Room},
        *,
    };
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use std::convert::Infallible;

    /// The room for messages being received is a quarter of what is in flight.
    fn room(bytes: usize) -> std::sync::Arc<Room> {
        Room::new(ClientLimits::default().in_flight_bytes(4 * bytes))
    }

    fn pieces(count: usize) -> impl Body<Data = Bytes> {
        let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"0123456789")));
        StreamBody::new(futures::stream::iter((0..count).map(move |_| piece())))
    }

    /// The wait for a body that does not arrive is bounded.
    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_body_is_bounded() {
        let never = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let room = room(1000);
        assert_eq!(read(never, 1000, &mut room.arriving()).await, Err(StatusCode::REQUEST_TIMEOUT));
        let whole = Full::new(Bytes::from_static(b"{}"));
        assert_eq!(read(whole, 2, &mut room.arriving()).await.unwrap(), "{}");
    }

    /// A body is refused where it gets too long, whether or not its length was announced.
    #[tokio::test]
    async fn a_body_is_as_long_as_it_may_be() {
        let room = room(1000);
        assert_eq!(read(pieces(4), 40, &mut room.arriving()).await.unwrap().len(), 40);
        assert_eq!(read(pieces(5), 40, &mut room.arriving()).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let announced = Full::new(Bytes::from_static(b"{ }"));
        assert_eq!(read(announced, 2, &mut room.arriving()).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
    }

    /// Bodies that arrive together share their room; one that finds none is refused for the moment.
    #[tokio::test]
    async fn bodies_share_their_room() {
        let room = room(50);
        let mut first = room.arriving();
        assert!(read(pieces(3), 100, &mut first).await.is_ok());
        assert_eq!(read(pieces(3), 100, &mut room.arriving()).await, Err(StatusCode::SERVICE_UNAVAILABLE));
        drop(first);
        assert!(read(pieces(3), 100, &mut room.arriving()).await.is_ok());
    }
}
