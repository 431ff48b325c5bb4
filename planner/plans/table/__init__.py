"""Tables of any size: blocks of points, Arrow record batches of them, and Parquet files."""
