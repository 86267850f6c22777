-- What a check finds: each finding with the id that it is about, or with an empty one.
local findings = {}
local function finding(what, id)
  findings[#findings + 1], findings[#findings + 2] = what, id or ''
end
