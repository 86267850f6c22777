//! Reading what a script answers.

use std::str::FromStr;
use std::time::Duration;

use redis::Value;

use crate::error::{Error, Kind};

/// The words of a reply that have not been read.
pub(crate) struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    pub(crate) fn new(value: Value) -> Result<Self, Error> {
        match value {
            Value::Array(words) => Ok(Self(words.into_iter())),
            _ => Err(senseless()),
        }
    }

    /// A reply without words.
    pub(crate) fn empty() -> Self {
        Self(Vec::new().into_iter())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The next word.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        match self.0.next() {
            Some(Value::BulkString(word)) => String::from_utf8(word).map_err(|_| senseless()),
            _ => Err(senseless()),
        }
    }

    /// All words that are left.
    pub(crate) fn all(&mut self) -> Result<Vec<String>, Error> {
        (0..self.0.len()).map(|_| self.text()).collect()
    }

    /// The next word as what it stands for.
    pub(crate) fn parse<T: FromStr>(&mut self) -> Result<T, Error> {
        self.text()?.parse().map_err(|_| senseless())
    }

    /// The next word as a count; one beyond what fits is the largest.
    pub(crate) fn count(&mut self) -> Result<u32, Error> {
        let word = self.text()?;
        match word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
            true => Ok(word.parse().unwrap_or(u32::MAX)),
            false => Err(senseless()),
        }
    }

    /// The next word as what it stands for, or nothing.
    pub(crate) fn maybe<T: FromStr>(&mut self) -> Result<Option<T>, Error> {
        match self.text()?.as_str() {
            "" => Ok(None),
            word => word.parse().map(Some).map_err(|_| senseless()),
        }
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Error> {
        Ok(self.text()? == "1")
    }

    /// A time in microseconds.
    pub(crate) fn time(&mut self) -> Result<Duration, Error> {
        self.parse().map(Duration::from_micros)
    }

    /// A time, or nothing.
    pub(crate) fn maybe_time(&mut self) -> Result<Option<Duration>, Error> {
        Ok(self.maybe()?.map(Duration::from_micros))
    }
}

/// The error for an answer that no script of ours gives.
pub(crate) fn senseless() -> Error {
    Error::new(Kind::StoreRefused, "the store's answer makes no sense")
}
