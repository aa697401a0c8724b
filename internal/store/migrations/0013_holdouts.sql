-- Decisions have the parts that were held out when they were made; nothing was ever
-- written here.
DROP TABLE holdouts;
