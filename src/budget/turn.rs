//! What a request holds between asking for a site's budget and going out.

use tokio::time::Instant;

use super::queue::Place;
use crate::error::Error;

/// The head's place in a site's queue, or nothing for a site without a limit.
///
/// Dropping it passes the place on, and a slot that was reserved with it.
#[must_use]
pub(crate) struct Turn(Option<Place>);

impl Turn {
    pub(super) fn unlimited() -> Self {
        Self(None)
    }

    pub(super) fn at(place: Place) -> Self {
        Self(Some(place))
    }

    /// Takes over the slot that was left reserved or reserves the next one, and sleeps to it.
    ///
    /// It may be called again when the slot has been kept longer than the grace.
    ///
    /// # Cancel safety
    ///
    /// The slot stays reserved for the queue: this turn or the next one takes it over.
    pub(crate) async fn slot(&mut self) -> Result<(), Error> {
        match &mut self.0 {
            Some(place) => place.slot().await,
            None => Ok(()),
        }
    }

    /// Takes a slot only if one is due now, without sleeping.
    pub(crate) fn try_slot(&mut self) -> bool {
        self.0.as_mut().is_none_or(Place::try_slot)
    }

    /// How long a slot may be kept while waiting for a lease.
    #[cfg(test)]
    pub(crate) fn grace(&self) -> Option<std::time::Duration> {
        self.0.as_ref().map(Place::grace)
    }

    /// The request goes out now; the next waiter becomes the head.
    pub(crate) fn spend(self) -> Passage {
        let Some(place) = self.0 else { return Passage::unlimited() };
        let passage = Passage::until(place.good_until());
        place.spend();
        passage
    }
}

/// A request that has gone out, held until its body ends.
#[must_use]
pub(crate) struct Passage {
    /// `None` where there is no limit.
    fresh_until: Option<Instant>,
}

impl Passage {
    pub(super) fn unlimited() -> Self {
        Self { fresh_until: None }
    }

    pub(super) fn until(fresh_until: Instant) -> Self {
        Self { fresh_until: Some(fresh_until) }
    }

    /// Whether another attempt may still use its slot, if the site has not seen this one.
    ///
    /// Slots of attempts that failed together would else be spent together.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh_until.is_none_or(|until| Instant::now() <= until)
    }
}
