//! By which answers a site shows that it has banned an endpoint.

use http::{HeaderName, StatusCode};

use super::Answer;

/// What an answer looks like that a site gives to those whom it has banned.
///
/// ```
/// use http::{StatusCode, header::LOCATION};
/// use reqwest_lease::{BanMark, DefaultClassifier, Site};
///
/// # fn example() -> Option<DefaultClassifier> {
/// let site = Site::parse("shop.example")?;
/// let marks = [
///     BanMark::status(StatusCode::FORBIDDEN),
///     BanMark::header(LOCATION, "/captcha"),
///     BanMark::status(StatusCode::OK).and(BanMark::body("unusual traffic")),
/// ];
/// # Some(
/// DefaultClassifier::new().ban_marks(site, marks)
/// # )
/// # }
/// # assert!(example().is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct BanMark(Vec<Sign>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Sign {
    Status(StatusCode),
    Header(HeaderName, String),
    Body(Vec<u8>),
}

impl BanMark {
    /// This status.
    pub fn status(status: StatusCode) -> Self {
        Self(vec![Sign::Status(status)])
    }

    /// A header with this text in one of its values; the empty text is in all.
    pub fn header(name: HeaderName, text: impl Into<String>) -> Self {
        Self(vec![Sign::Header(name, text.into())])
    }

    /// This text, byte for byte, in the beginning of the body as the caller reads it, that is
    /// decoded. How much is looked at is the classifier's
    /// [`look_at`](super::DefaultClassifier::look_at).
    pub fn body(text: impl Into<Vec<u8>>) -> Self {
        Self(vec![Sign::Body(text.into())])
    }

    /// This mark and the other one as well.
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether the answer has all of it, as far as is known: `None` when only the body can tell.
    pub(super) fn is_on(&self, answer: &Answer<'_>, body: Option<&[u8]>) -> Option<bool> {
        let mut on = Some(true);
        for sign in &self.0 {
            match sign.is_on(answer, body) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => on = None,
            }
        }
        on
    }
}

impl Sign {
    fn is_on(&self, answer: &Answer<'_>, body: Option<&[u8]>) -> Option<bool> {
        match self {
            Self::Status(status) => Some(*status == answer.status),
            Self::Header(name, text) => {
                let mut values = answer.headers.get_all(name).iter();
                Some(values.any(|value| contains(value.as_bytes(), text.as_bytes())))
            }
            Self::Body(text) => body.map(|body| contains(body, text)),
        }
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
}
