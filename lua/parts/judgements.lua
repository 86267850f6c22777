-- Whom judge has verdicts on, one to 16 grants. Straight down.
local width, asked, ids, fences = 6, #ARGV / 6, {''}, {0}
if asked ~= floor(asked) or asked < 1 or asked > 16 then
  error({err = 'BADCALL verdicts'})
end
for nth = 1, asked do
  local id, fence = ARGV[6 * nth - 5], tonumber(ARGV[6 * nth - 4])
  if #id > 64 or not find(id, '^[A-Za-z0-9_-]+$') then
    error({err = 'BADCALL id'})
  elseif not find(ARGV[6 * nth - 4], '^%d+$') or fence > 2 * LONGEST then
    error({err = 'BADCALL fence'})
  end
  ids[nth], fences[nth] = id, fence
end
