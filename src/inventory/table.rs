//! Typed, located access to a TOML table.

use std::ops::RangeInclusive;

use toml::de::{DeTable, DeValue};

use super::fault::Fault;

/// A value and the byte that it stands at.
#[derive(Clone, Copy)]
pub(super) struct Found<T> {
    pub(super) at: usize,
    pub(super) value: T,
}

/// A table and the byte that it begins at.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) at: usize,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn new(at: usize, entries: &'a DeTable<'a>) -> Self {
        Self { at, entries }
    }

    pub(super) fn value(&self, key: &str) -> Option<Found<&'a DeValue<'a>>> {
        self.entries.get(key).map(|value| Found { at: value.span().start, value: value.get_ref() })
    }

    /// Refuses the first key that is none of these.
    pub(super) fn allow_only(&self, known: &[&str]) -> Result<(), Fault> {
        let unknown = self.entries.keys().filter(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown.map(|key| key.span().start).min() {
            Some(at) => {
                let known = known.join(", ");
                Err(Fault::new(at, format!("unknown key; the known keys here are {known}")))
            }
            None => Ok(()),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<Found<&'a str>>, Fault> {
        let Some(found) = self.value(key) else {
            return Ok(None);
        };
        match found.value.as_str() {
            Some(value) => Ok(Some(Found { at: found.at, value })),
            None => Err(wrong_type(key, "a string", found)),
        }
    }

    pub(super) fn integer(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Found<u64>>, Fault> {
        let Some(found) = self.value(key) else {
            return Ok(None);
        };
        let Some(integer) = found.value.as_integer() else {
            return Err(wrong_type(key, "an integer", found));
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) if range.contains(&value) => Ok(Some(Found { at: found.at, value })),
            _ => {
                let (least, most) = range.into_inner();
                Err(Fault::new(found.at, format!("`{key}` must be {least} to {most}")))
            }
        }
    }

    /// A word for people to sort by.
    pub(super) fn label(&self, key: &str) -> Result<Option<String>, Fault> {
        self.text(key)?.map(|found| check_label(key, found)).transpose()
    }

    pub(super) fn labels(&self, key: &str) -> Result<Vec<String>, Fault> {
        let Some(found) = self.value(key) else {
            return Ok(Vec::new());
        };
        let Some(array) = found.value.as_array() else {
            return Err(wrong_type(key, "an array of strings", found));
        };
        let label = |item: &'a toml::Spanned<DeValue<'a>>| {
            let found = Found { at: item.span().start, value: item.get_ref() };
            match found.value.as_str() {
                Some(value) => check_label(key, Found { at: found.at, value }),
                None => Err(wrong_type(key, "an array of strings", found)),
            }
        };
        array.iter().map(label).collect()
    }
}

/// Names the type that is there, never the value.
pub(super) fn wrong_type(key: &str, wanted: &str, found: Found<&DeValue<'_>>) -> Fault {
    let kind = found.value.type_str();
    Fault::new(found.at, format!("`{key}` must be {wanted}; it has a value of type {kind}"))
}

fn check_label(key: &str, label: Found<&str>) -> Result<String, Fault> {
    if label.value.trim().is_empty() {
        return Err(Fault::new(label.at, format!("`{key}` must not be empty")));
    }
    if label.value.contains(char::is_control) {
        return Err(Fault::new(label.at, format!("`{key}` cannot contain control characters")));
    }
    Ok(label.value.to_owned())
}
