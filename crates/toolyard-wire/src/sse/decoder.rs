//! Decodes SSE text that arrives in pieces into calls, each as soon as it is complete.

use super::{SseEvent, SseSplitter};
use crate::{DecodeError, Format, Message, StreamDecoder, decode::is_cut, detect::StreamFormat};
use toolyard_core::Call;

/// Decodes SSE text while the model writes it, in pieces of any size.
///
/// This is [`decode`](crate::decode) for a text that is still arriving: the final message, or error, is the same.
/// After each piece, even one that failed, [`take_calls`](Self::take_calls) returns the calls that it completed.
///
/// # Examples
/// ```
/// use toolyard_wire::SseDecoder;
/// let mut stream = SseDecoder::new(None);
/// stream.push(b"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":")?;
/// stream.push(b"{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"now\",\"input\":{}}}\n\n")?;
/// assert!(stream.take_calls().is_empty());
/// stream.push(b"data: {\"type\":\"content_block_stop\",\"index\":0}\n\nda")?;
/// assert_eq!(stream.take_calls()[0].name.as_ref(), "now");
/// stream.finish()?;
/// assert_eq!(stream.message().unwrap().calls().len(), 1);
/// # Ok::<(), toolyard_wire::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    splitter: SseSplitter,
    events: Events,
    /// How many calls `take_calls` has returned.
    returned: usize,
    /// Whether there was an error or the end, after which nothing is read.
    ended: bool,
}

/// The events read so far, and the decoder once the format is known.
#[derive(Debug, Default)]
struct Events {
    count: usize,
    decoder: Option<StreamDecoder>,
    format: StreamFormat,
    /// The data of the events that came before the format was known.
    undecoded: Vec<String>,
    cut: bool,
}

impl SseDecoder {
    /// Creates a decoder for one stream. Without a format, the first event whose shape decides it gives the format.
    pub fn new(format: Option<Format>) -> Self {
        let events = Events { decoder: format.map(StreamDecoder::new), ..Events::default() };
        Self { splitter: SseSplitter::default(), events, returned: 0, ended: false }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// [`DecodeError`], as for [`decode`](crate::decode), and when the text is not UTF-8. Nothing is read after that;
    /// earlier calls stay, and [`finish`](Self::finish) adds the incomplete ones.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), DecodeError> {
        if self.ended {
            return Ok(());
        }
        let read = self.read(&mut piece);
        self.ended = read.is_err();
        read
    }

    fn read(&mut self, piece: &mut &[u8]) -> Result<(), DecodeError> {
        while let Some(event) = self.splitter.read(piece)? {
            self.events.add(&event)?;
        }
        Ok(())
    }

    /// Ends the stream, wherever it is. An incomplete call is returned with the text received so far, which does not
    /// parse, so that the engine answers it `invalid_input`; [`Message::is_cut`] is then true.
    ///
    /// # Errors
    /// [`DecodeError`] when no format was found, and when the text ends inside its last event without any call before.
    /// After an error of [`push`](Self::push) this returns `Ok`.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        let ended = if std::mem::replace(&mut self.ended, true) { Ok(()) } else { self.end_text() };
        if let Some(decoder) = &mut self.events.decoder {
            decoder.finish();
        }
        ended.or_else(|error| self.events.cut(error))
    }

    fn end_text(&mut self) -> Result<(), DecodeError> {
        if let Some(event) = self.splitter.finish()? {
            self.events.add(&event)?;
        }
        match &self.events.decoder {
            Some(decoder) if decoder.is_blank() => Err(DecodeError::Empty),
            Some(_) => Ok(()),
            None => Err(self.events.format.unknown()),
        }
    }

    /// Takes the calls that have completed since the last time, in call order.
    pub fn take_calls(&mut self) -> Vec<Call> {
        let calls = self.message().map(Message::calls).unwrap_or_default();
        let calls = calls[self.returned..].to_vec();
        self.returned += calls.len();
        calls
    }

    /// The calls so far as a message, for encoding their results; `None` while the format is unknown.
    pub fn message(&self) -> Option<&Message> {
        self.events.decoder.as_ref().map(StreamDecoder::message)
    }

    /// Like [`message`](Self::message), by value.
    pub fn into_message(self) -> Option<Message> {
        self.events.decoder.map(StreamDecoder::into_message)
    }
}

impl Events {
    fn add(&mut self, event: &SseEvent<'_>) -> Result<(), DecodeError> {
        self.count += 1;
        let added = match &mut self.decoder {
            Some(decoder) => decoder.push(&event.data).map(drop),
            None => self.detect_format(&event.data),
        };
        added.map_err(|error| {
            self.cut = is_cut(event, &error);
            error.in_event(self.count)
        })
    }

    /// Detects the format from an event, and once it is known decodes the events that waited for it.
    fn detect_format(&mut self, data: &str) -> Result<(), DecodeError> {
        let format = self.format.observe(data)?;
        self.undecoded.push(data.to_owned());
        let Some(format) = format else { return Ok(()) };
        let decoder = self.decoder.insert(StreamDecoder::new(format));
        let mut undecoded = std::mem::take(&mut self.undecoded).into_iter();
        undecoded.try_for_each(|data| decoder.push(&data).map(drop))
    }

    /// Drops the error if it only means that the text broke off inside an event and calls came before it.
    fn cut(&mut self, error: DecodeError) -> Result<(), DecodeError> {
        match &mut self.decoder {
            Some(decoder) if self.cut && !decoder.message().is_empty() => {
                decoder.set_cut();
                Ok(())
            }
            _ => Err(error),
        }
    }
}
