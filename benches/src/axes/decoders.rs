//! How fast responses are decoded, per byte: whole, and as streams in network-sized pieces.

use crate::{
    axis::{Axis, Building, Unit},
    contender::{Contender, Contenders, Work},
    response,
};
use std::sync::Arc;
use toolyard_wire::{Format, SseDecoder, decode};

pub(crate) const AXIS: Axis = Axis {
    name: "decoders",
    about: "decoding responses, whole or as SSE in pieces of 1400 bytes",
    sizes: &[8, 1000],
    rounds: 31,
    calls_per_sample: 1000,
    unit: Unit::Byte,
    build,
};

/// About the payload of one packet.
const PIECE: usize = 1400;

fn build() -> Building {
    Box::pin(async {
        let whole = Format::ALL.map(|format| Arc::new(Decoder { format, streams: false }));
        let streams = [Format::OpenAiChat, Format::Anthropic];
        let streams = streams.map(|format| Arc::new(Decoder { format, streams: true }));
        let all: Contenders =
            whole.into_iter().chain(streams).map(|each| each as Arc<dyn Contender>).collect();
        Ok(all)
    })
}

struct Decoder {
    format: Format,
    streams: bool,
}

impl Decoder {
    fn text(&self, calls: usize) -> String {
        if self.streams { response::stream(self.format, calls) } else { response::whole(self.format, calls) }
    }
}

impl Contender for Decoder {
    fn name(&self) -> &str {
        match (self.format, self.streams) {
            (format, false) => format.as_str(),
            (Format::OpenAiChat, true) => "openai-chat, stream",
            (_, true) => "anthropic, stream",
        }
    }

    fn units(&self, calls: usize) -> usize {
        self.text(calls).len()
    }

    fn work(&self, calls: usize, batches: usize) -> Work {
        let (text, format, streams) = (self.text(calls), self.format, self.streams);
        Box::pin(async move {
            for _ in 0..batches {
                let found = if streams { in_pieces(&text, format) } else { whole(&text, format) };
                assert_eq!(found, calls);
            }
        })
    }
}

fn whole(text: &str, format: Format) -> usize {
    let message = decode(text, Some(format)).expect("the response is well formed");
    std::hint::black_box(message).calls().len()
}

fn in_pieces(text: &str, format: Format) -> usize {
    let mut decoder = SseDecoder::new(Some(format));
    let mut found = 0;
    for piece in text.as_bytes().chunks(PIECE) {
        decoder.push(piece).expect("the stream is well formed");
        found += std::hint::black_box(decoder.take_calls()).len();
    }
    decoder.finish().expect("the stream is whole");
    found + decoder.take_calls().len()
}
