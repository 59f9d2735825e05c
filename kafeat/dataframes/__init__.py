"""What Dask and Spark share."""
