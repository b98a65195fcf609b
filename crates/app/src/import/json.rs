//! Reads JSON documents and JSON lines of any length, one element at a time.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    rc::Rc,
};

use anamnesis_store::fs::file;
use anamnesis_text::clean::one_line;
use serde::{
    Deserialize,
    de::{
        DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};
use serde_json::Value;

use crate::Error;

/// The longest element or line, in bytes.
const MAX_ELEMENT: u64 = 64 * 1024 * 1024;

/// Opens a file that a person named, or that was found in a folder.
pub(super) fn open(path: &Path) -> Result<BufReader<std::fs::File>, Error> {
    let (file, _) = file::open_single(path).map_err(|error| unreadable(path, &error))?;
    Ok(BufReader::with_capacity(256 * 1024, file))
}

/// The error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let path = one_line(&path.to_string_lossy());
    Error::failed(format!("cannot read {path}: {error}"))
}

/// Calls `take` with each element of the arrays of a document, and with its other values: the key in
/// the outer object, empty for an outer array, and the element.
///
/// # Errors
/// Of the document and of `take`.
pub(super) fn each_element(
    path: &Path,
    reader: impl Read,
    take: &mut dyn FnMut(&str, Value) -> Result<(), Error>,
) -> Result<(), Error> {
    let left = Rc::new(Cell::new(MAX_ELEMENT));
    let mut reader = BufReader::new(Limited {
        inner: reader,
        left: Rc::clone(&left),
    });
    let head = reader
        .fill_buf()
        .map_err(|error| unreadable(path, &error))?;
    if head.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    let mut failure = None;
    let mut visit = |key: &str, value: Value| {
        left.set(MAX_ELEMENT);
        take(key, value).map_err(|error| {
            failure = Some(error);
        })
    };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let document = Elements {
        key: String::new(),
        take: &mut visit,
        is_outer: true,
    };
    let read = document.deserialize(&mut deserializer);
    let read = read.and_then(|()| deserializer.end());
    match (failure, read) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(unreadable(path, &format!("no valid JSON: {error}"))),
    }
}

/// Ends reading when an element is too long.
struct Limited<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        let left = self.left.get().checked_sub(length as u64);
        self.left
            .set(left.ok_or_else(|| io::Error::other("an element over 64 MiB"))?);
        Ok(length)
    }
}

/// The elements of one value.
struct Elements<'a> {
    key: String,
    take: &'a mut dyn FnMut(&str, Value) -> Result<(), ()>,
    is_outer: bool,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Elements<'_> {
    fn take<E: serde::de::Error>(self, value: Value) -> Result<(), E> {
        (self.take)(&self.key, value).map_err(|()| E::custom("stopped"))
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<Value>()? {
            (self.take)(&self.key, value).map_err(|()| A::Error::custom("stopped"))?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        if !self.is_outer {
            let value = Value::deserialize(MapAccessDeserializer::new(object))?;
            return self.take(value);
        }
        while let Some(key) = object.next_key::<String>()? {
            object.next_value_seed(Elements {
                key,
                take: &mut *self.take,
                is_outer: false,
            })?;
        }
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.take(text.into())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.take(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.take(number.into())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.take(number.into())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.take(number.into())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.take(Value::Null)
    }
}

/// Calls `take` with the number and the value of each line; a line that is no JSON is `None`.
///
/// # Errors
/// Of the file and of `take`.
pub(super) fn each_line(
    path: &Path,
    mut reader: impl BufRead,
    take: &mut dyn FnMut(usize, Option<Value>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = reader.by_ref().take(MAX_ELEMENT);
        let length = limited
            .read_until(b'\n', &mut line)
            .map_err(|error| unreadable(path, &error))?;
        if length == 0 {
            return Ok(());
        }
        let text = line
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(&line)
            .trim_ascii();
        if !text.is_empty() {
            take(number, serde_json::from_slice(text).ok())?;
        }
    }
    Ok(())
}
