//! The beginning of a body that goes by, for a classifier that wants to see it.

use http::{HeaderMap, StatusCode};

use crate::classify::{Answer, Classifier, Route};
use crate::outcome::Outcome;
use crate::site::Site;

/// A copy of the first bytes, and of the head they belong to.
pub(crate) struct Preview {
    status: StatusCode,
    headers: HeaderMap,
    route: Route,
    site: Site,
    wanted: usize,
    seen: Vec<u8>,
}

/// More is never looked at.
const MOST: usize = 64 << 10;

impl Preview {
    /// One of so many bytes, if any.
    pub(crate) fn of(answer: &Answer<'_>, wanted: usize) -> Option<Box<Self>> {
        let Answer { status, headers, route, site } = *answer;
        (wanted > 0).then(|| {
            Box::new(Self {
                status,
                headers: headers.clone(),
                route,
                site: site.clone(),
                wanted: wanted.min(MOST),
                seen: Vec::new(),
            })
        })
    }

    /// Takes in what goes by.
    pub(crate) fn add(&mut self, data: &[u8]) {
        let room = self.wanted - self.seen.len();
        self.seen.extend_from_slice(&data[..data.len().min(room)]);
    }

    pub(crate) fn has_begun(&self) -> bool {
        !self.seen.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.seen.len() >= self.wanted
    }

    /// What the classifier makes of it.
    pub(crate) fn outcome(&self, classifier: &dyn Classifier) -> Outcome {
        let answer = Answer::new(self.status, &self.headers, self.route, &self.site);
        classifier.body_start(&answer, &self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Scheme;

    /// Takes for a ban what it has seen exactly so much of.
    struct Length(usize);

    impl Classifier for Length {
        fn body_start(&self, _: &Answer<'_>, start: &[u8]) -> Outcome {
            if start.len() == self.0 { Outcome::Banned } else { Outcome::Success }
        }
    }

    #[test]
    fn no_more_is_copied_than_wanted_and_never_more_than_there_may_be() {
        let (headers, site) = (HeaderMap::new(), Site::parse("a.test").unwrap());
        let route = Route::new(Scheme::Http, true);
        let answer = Answer::new(StatusCode::OK, &headers, route, &site);
        assert!(Preview::of(&answer, 0).is_none());
        for (wanted, copied) in [(1, 1), (10, 10), (usize::MAX, MOST)] {
            let mut preview = Preview::of(&answer, wanted).unwrap();
            while !preview.is_full() {
                preview.add(b"seven b");
            }
            preview.add(b"more");
            assert_eq!(preview.outcome(&Length(copied)), Outcome::Banned, "{wanted}");
        }
    }
}
