-- A server searches a hash from end to end while it is small and its texts are short: with some
-- hundred leases that would be most of what a call costs. A long text makes it look up by hash.
local NOTE = 'Kept by reqwest-lease, not to be changed by hand. It is long for the sake of speed.'
