# train a small net again
epochs = 20
batch_size = 32
for epoch in range(epochs): train(batch_size)
