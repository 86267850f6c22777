//! The Redis store has every property that stores have.

use reqwest_lease::conformance;

use crate::support::redis::Redis;

macro_rules! hold_in_redis {
    ($($property:ident)*) => { $(
        #[tokio::test]
        async fn $property() {
            let fixture = Redis::new().await;
            conformance::$property(&fixture).await;
            let found = fixture.store.check(&conformance::Fixture::pool(&fixture)).await;
            if let Ok(found) = found {
                assert!(found.is_empty(), "{found:?}");
            }
        }
    )* };
}
reqwest_lease::for_each_property!(hold_in_redis);
