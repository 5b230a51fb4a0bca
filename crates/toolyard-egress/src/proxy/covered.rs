//! The body of a response, on its way to a program.

use super::mask::{Mask, Pieces};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// A body in which secrets are covered. Its trailers are left out: nobody could have asked for them.
pub(super) struct Covered<B> {
    body: B,
    mask: Option<Arc<Mask>>,
    pieces: Pieces,
    is_done: bool,
}

impl<B> Covered<B> {
    pub(super) fn new(body: B, mask: Option<Arc<Mask>>) -> Self {
        Self { body, mask, pieces: Pieces::default(), is_done: false }
    }

    /// What can be shown of this piece, or of what was held back at the end.
    fn cover(&mut self, piece: Option<Bytes>) -> Bytes {
        match (&self.mask, piece) {
            (None, piece) => piece.unwrap_or_default(),
            (Some(mask), Some(piece)) => self.pieces.push(mask, &piece).into(),
            (Some(mask), None) => self.pieces.finish(mask).into(),
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Covered<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        while !self.is_done {
            let piece = match ready!(Pin::new(&mut self.body).poll_frame(cx)).transpose()? {
                None => {
                    self.is_done = true;
                    None
                }
                Some(frame) => match frame.into_data() {
                    Ok(data) => Some(data),
                    Err(_) => continue,
                },
            };
            let shown = self.cover(piece);
            if !shown.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(shown))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_done || (self.body.is_end_stream() && self.pieces.held() == 0)
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, held) = (self.body.size_hint(), self.pieces.held());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}
